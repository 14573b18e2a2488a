package desired

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// world is an index and the policies of a cluster, which become what it decides.
type world struct {
	*Index
	t        testing.TB
	policies map[types.NamespacedName]*networkingv1.NetworkPolicy
	version  int
	writes   []string
	problems []string
}

func newWorld(t testing.TB, o Options) *world {
	w := &world{Index: NewIndex(o), t: t, policies: map[types.NamespacedName]*networkingv1.NetworkPolicy{}}
	for _, kind := range []Kind{Services, Namespaces, Policies, Ingresses, Pods, VirtualServices, Gateways} {
		w.Complete(kind)
	}
	return w
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// settle does what requests lead to until nothing is left to do.
func (w *world) settle(requests []Request) {
	w.t.Helper()
	for round := 0; len(requests) > 0; round++ {
		must.True(w.t, round <= 50, "no end of requests: %v", requests)
		var more []Request
		for _, r := range requests {
			more = append(more, w.do(r)...)
		}
		requests = more
	}
}

func (w *world) do(r Request) []Request {
	d := w.Decide(r)
	var requests []Request
	for _, p := range d.Write {
		requests = append(requests, w.put(p)...)
	}
	for _, e := range d.Delete {
		w.writes = append(w.writes, "delete "+e.String())
		delete(w.policies, e.NamespacedName)
		requests = append(requests, w.Remove(Policies, e.Namespace, e.Name)...)
	}
	for _, p := range d.Problems {
		w.problems = append(w.problems, p.Error())
	}
	return requests
}

func (w *world) put(p *Policy) []Request {
	verb := "update "
	if w.policies[p.NamespacedName] == nil {
		verb = "create "
		if n := w.namespaces[p.Namespace]; n == nil || n.terminating {
			w.t.Errorf("NP-6: %s is created in a namespace that is not there or terminating", p)
		}
	}
	w.writes = append(w.writes, verb+p.String())
	object := p.Object()
	if present := w.policies[p.NamespacedName]; present != nil {
		object = present.DeepCopy()
		p.Apply(object)
	}
	return w.store(object)
}

// store makes a policy as somebody writes it, and reports it.
func (w *world) store(object *networkingv1.NetworkPolicy) []Request {
	w.version++
	object.ResourceVersion, object.UID = strconv.Itoa(w.version), types.UID(object.Namespace+"/"+object.Name)
	w.policies[key(object.Namespace, object.Name)] = object
	return w.SetPolicy(object)
}

func (w *world) namespace(name string, set ...string) {
	w.t.Helper()
	w.settle(w.SetNamespace(namespaceObject(name, set...)))
}

func (w *world) terminate(name string, set ...string) {
	w.t.Helper()
	o := namespaceObject(name, set...)
	o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	w.settle(w.SetNamespace(o))
}

func namespaceObject(name string, set ...string) *corev1.Namespace {
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	for _, pair := range set {
		k, v, _ := strings.Cut(pair, "=")
		o.Labels[k] = v
	}
	return o
}

func (w *world) service(o *corev1.Service) {
	w.t.Helper()
	w.settle(w.SetService(o))
}

// service returns a Service that selects app=<name>. Ports are "443:10250", "name=53:dns/UDP", …; annotations are without their prefix.
func service(namespace, name string, ports []string, annotations ...string) *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": name}}}
	for _, text := range ports {
		p := corev1.ServicePort{Protocol: corev1.ProtocolTCP}
		if before, after, named := strings.Cut(text, "="); named {
			p.Name, text = before, after
		}
		text, protocol, given := strings.Cut(text, "/")
		if given {
			p.Protocol = corev1.Protocol(protocol)
		}
		number, to, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		if err != nil {
			panic(err)
		}
		p.Port, p.TargetPort = int32(n), intstr.Parse(to)
		o.Spec.Ports = append(o.Spec.Ports, p)
	}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, prefix+annotations[i], annotations[i+1])
	}
	return o
}

// names returns the policies of the cluster as namespace/name, sorted.
func (w *world) names() []string {
	var all []string
	for k := range w.policies {
		all = append(all, k.String())
	}
	slices.Sort(all)
	return all
}

func (w *world) want(rule string, names ...string) {
	w.t.Helper()
	slices.Sort(names)
	if got := w.names(); !slices.Equal(got, names) {
		w.t.Errorf("%s: got\n  %s\nwant\n  %s", rule, strings.Join(got, "\n  "), strings.Join(names, "\n  "))
	}
	w.valid()
}

// valid checks that the names and labels of all policies are such that an API server takes them.
func (w *world) valid() {
	w.t.Helper()
	for k, p := range w.policies {
		if problems := validation.IsDNS1123Subdomain(k.Name); len(problems) > 0 {
			w.t.Errorf("NP-18: %s: %v", k, problems)
		}
		selected := []metav1.LabelSelector{p.Spec.PodSelector}
		for _, rule := range p.Spec.Ingress {
			for _, peer := range rule.From {
				selected = append(selected, *peer.PodSelector)
			}
		}
		for _, s := range selected {
			for key := range s.MatchLabels {
				if problems := validation.IsQualifiedName(key); len(problems) > 0 {
					w.t.Errorf("NP-21: %s: %s: %v", k, key, problems)
				}
			}
		}
	}
}

func (w *world) policy(namespace, name string) *networkingv1.NetworkPolicy {
	w.t.Helper()
	p := w.policies[key(namespace, name)]
	if p == nil {
		w.t.Fatalf("there is no policy %s/%s, but %v", namespace, name, w.names())
	}
	return p
}

// clients returns the labels and namespaces of a policy's peers, as text.
func clients(p *networkingv1.NetworkPolicy) string {
	var all []string
	for _, rule := range p.Spec.Ingress {
		for _, peer := range rule.From {
			from := labels.Set(peer.PodSelector.MatchLabels).String()
			if peer.NamespaceSelector != nil {
				from += " in " + peer.NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
			}
			all = append(all, from)
		}
	}
	return strings.Join(all, "; ")
}

func (w *world) told(rule, part string) {
	w.t.Helper()
	expect.True(w.t, slices.ContainsFunc(w.problems, func(p string) bool { return strings.Contains(p, part) }),
		"%s: %q is not among the problems %q", rule, part, w.problems)
}

func ports(p *networkingv1.NetworkPolicy) string {
	var all []string
	for _, rule := range p.Spec.Ingress {
		for i := range rule.Ports {
			all = append(all, fmt.Sprintf("%s %T %s", DescribeLabels.port(&rule.Ports[i]), rule.Ports[i].Port, []string{"number", "name"}[rule.Ports[i].Port.Type]))
		}
	}
	return strings.ReplaceAll(strings.Join(all, "; "), "*intstr.IntOrString ", "")
}

// none is a list that is empty.
func none(string, string) bool { return false }
