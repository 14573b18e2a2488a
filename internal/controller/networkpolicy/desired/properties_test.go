package desired

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// inputs are all that decides about policies.
type inputs struct {
	namespaces map[string]*corev1.Namespace
	services   map[types.NamespacedName]*corev1.Service
	ingresses  map[types.NamespacedName]*networkingv1.Ingress
	pods       map[types.NamespacedName]map[string]string
}

// Names are such that they come to the same when they are joined.
var (
	propertyNamespaces = []string{"a", "a-b", "b", "c", "b-from-c", "istio"}
	propertyServices   = []string{"s", "b-s", "s-from-a"}
)

// indexed fills a new index with everything, in any order, and makes the policies.
func indexed(t testing.TB, o Options, in *inputs, only *types.NamespacedName) *world {
	w := newWorld(t, o)
	for _, n := range in.namespaces {
		w.settle(w.SetNamespace(n))
	}
	for k, s := range in.services {
		if only == nil || k == *only {
			w.settle(w.SetService(s))
		}
	}
	for _, i := range in.ingresses {
		w.settle(w.SetIngress(i))
	}
	for k, p := range in.pods {
		w.settle(w.SetPod(k.Namespace, k.Name, p))
	}
	return w
}

func drawService(t *rapid.T, namespace, name string) *corev1.Service {
	var ports []string
	for range rapid.IntRange(0, 2).Draw(t, "ports") {
		ports = append(ports, rapid.SampledFrom([]string{"80:80", "81:80", "http=82:web", "53:53/UDP", "84:84"}).Draw(t, "port"))
	}
	o := service(namespace, name, ports)
	values := map[string][]string{
		"namespace-selectors":                  {`[{}]`, `[{"matchLabels":{"x":"1"}}]`, `[{"matchLabels":{"x":"2"}},{"matchLabels":{"kubernetes.io/metadata.name":"c"}}]`, `[{`, `[]`},
		"pod-label-selector-namespace-alias":   {"alias", "not a label"},
		"from-world-to-ports":                  {`[]`, `[{"port":"80"}]`, `x`},
		"from-x-allowed-ports":                 {`[{"port":1}]`, `[{"port":1},{"port":"p","protocol":"UDP"}]`, `[{"protocol":"TCP"}]`, `{`},
		"from-x-from-a-allowed-ports":          {`[{"port":1}]`},
		"from-" + namespace + "-allowed-ports": {`[{"port":80}]`},
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if i := rapid.IntRange(-len(values[key])-1, len(values[key])-1).Draw(t, key); i >= 0 {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, prefix+key, values[key][i])
		}
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind of Service") {
	case 0:
		o.Spec.Selector = nil
	case 1:
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return o
}

func drawNamespace(t *rapid.T, name string) *corev1.Namespace {
	o := namespaceObject(name, "x="+rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "x"), "handled="+rapid.SampledFrom([]string{"yes", "yes", "no"}).Draw(t, "handled"))
	if rapid.IntRange(0, 9).Draw(t, "terminating") == 0 {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return o
}

func drawOptions(t *rapid.T) Options {
	o := Options{
		OnlyForExistingPods: rapid.Bool().Draw(t, "only for existing Pods"),
		Descriptions:        rapid.SampledFrom([]DescriptionFormat{DescribeLabels, DescribeSelector}).Draw(t, "descriptions"),
	}
	if rapid.Bool().Draw(t, "selectors") {
		o.Handled = []labels.Selector{labels.SelectorFromSet(labels.Set{"handled": "yes"})}
	}
	if rapid.Bool().Draw(t, "ingress controller") {
		o.IngressController = &IngressController{rapid.SampledFrom(propertyNamespaces).Draw(t, "of the ingress controller"), metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx"}}}
	}
	return o
}

// change makes one change and reports it.
func (in *inputs) change(t *rapid.T, w *world) []Request {
	namespace := rapid.SampledFrom(propertyNamespaces).Draw(t, "namespace")
	service := key(namespace, rapid.SampledFrom(propertyServices).Draw(t, "service"))
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0, 1, 2:
		in.services[service] = drawService(t, service.Namespace, service.Name)
		return w.SetService(in.services[service])
	case 3:
		delete(in.services, service)
		return w.Remove(Services, service.Namespace, service.Name)
	case 4, 5:
		in.namespaces[namespace] = drawNamespace(t, namespace)
		return w.SetNamespace(in.namespaces[namespace])
	case 6:
		if len(w.in(namespace)) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(in.services)), func(k types.NamespacedName) bool { return k.Namespace == namespace }) {
			return nil // A Namespace is gone once it is empty.
		}
		delete(in.namespaces, namespace)
		return w.Remove(Namespaces, "", namespace)
	case 7:
		in.ingresses[service] = ingress(service.Namespace, service.Name, rapid.SampledFrom(propertyServices).Draw(t, "backend")+":"+rapid.SampledFrom([]string{"80", "http", "99"}).Draw(t, "port"))
		return w.SetIngress(in.ingresses[service])
	case 8:
		delete(in.ingresses, service)
		return w.Remove(Ingresses, service.Namespace, service.Name)
	default:
		of := rapid.SampledFrom(propertyNamespaces).Draw(t, "namespace of the Service")
		in.pods[service] = map[string]string{prefix + "to-" + rapid.SampledFrom([]string{"s-tcp-80", of + "-s-tcp-80", "x", of + "-x", "alias-s-tcp-80"}).Draw(t, "label"): rapid.SampledFrom([]string{"allowed", "denied"}).Draw(t, "value")}
		return w.SetPod(service.Namespace, service.Name, in.pods[service])
	}
}

func (w *world) in(namespace string) []types.NamespacedName {
	var all []types.NamespacedName
	for k := range w.policies {
		if k.Namespace == namespace {
			all = append(all, k)
		}
	}
	return all
}

// Properties: whatever came before, in whatever order it was told and whatever somebody did to the policies, what is there is what the inputs
// ask for (NP-5, NP-8, NP-40 … NP-43), and what is wanted for one Service is the same without all others.
func TestPropertyPoliciesAreAFunctionOfTheInputs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := drawOptions(rt)
		in := &inputs{map[string]*corev1.Namespace{}, map[types.NamespacedName]*corev1.Service{}, map[types.NamespacedName]*networkingv1.Ingress{}, map[types.NamespacedName]map[string]string{}}
		w := newWorld(t, o)
		var late []Request
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			late = append(late, in.change(rt, w)...)
			if rapid.Bool().Draw(rt, "settle") {
				w.settle(late)
				late = nil
			}
			if len(w.policies) > 0 && rapid.IntRange(0, 4).Draw(rt, "by hand") == 0 {
				late = append(late, w.byHand(rt)...)
			}
		}
		w.settle(late)
		w.valid()
		for service := range in.services {
			alone := indexed(t, o, in, &service)
			expect.DeepEqual(rt, digests(w.Wanted(service)), digests(alone.Wanted(service)),
				"the policies of %s depend on other Services", service)
		}
		w.agrees(rt, in)
		// Nothing is left to do, and a check of one namespace comes to the same as a check of all.
		for service := range in.services {
			for _, peer := range append([]string{""}, propertyNamespaces...) {
				d := w.Decide(Request{Service: service, Peer: peer})
				must.True(rt, len(d.Write)+len(d.Delete) == 0, "%s, %q: left to do: %v, %v", service, peer, digests(d.Write), d.Delete)
			}
		}
	})
}

// byHand does to a policy what somebody could.
func (w *world) byHand(t *rapid.T) []Request {
	names := slices.SortedFunc(maps.Keys(w.policies), compareNames)
	k := rapid.SampledFrom(names).Draw(t, "policy")
	switch rapid.IntRange(0, 2).Draw(t, "by hand") {
	case 0:
		delete(w.policies, k)
		return w.Remove(Policies, k.Namespace, k.Name)
	case 1:
		p := w.policies[k].DeepCopy()
		p.Spec.Egress, p.Spec.Ingress = nil, nil
		return w.store(p)
	default:
		p := w.policies[k].DeepCopy()
		p.Name += "-copy"
		return w.store(p)
	}
}

// agrees compares the policies of the cluster with what is wanted for each Service. A policy in a namespace that ends, or one that stands for what
// cannot be read, may be there; two Services that come to one name share it.
func (w *world) agrees(t *rapid.T, in *inputs) {
	wanted := map[types.NamespacedName]bool{}
	for service := range in.services {
		for _, p := range w.Wanted(service) {
			got := w.policies[p.NamespacedName]
			switch {
			case got == nil:
				t.Fatalf("%s of %s is missing", p, service)
			case ServiceOfPolicy(got) == service && DigestOf(got) != p.Digest():
				t.Fatalf("%s is not as it should be: %s", p, cmp.Diff(p.Spec, got.Spec))
			case ServiceOfPolicy(got) != service && !w.wants(ServiceOfPolicy(got), p.NamespacedName) && !w.mayStay(got):
				t.Fatalf("%s of %s is that of %s, which does not want it", p, service, ServiceOfPolicy(got))
			}
			wanted[p.NamespacedName] = true
		}
	}
	for k, p := range w.policies {
		if !wanted[k] && !w.mayStay(p) {
			t.Fatalf("%s is not wanted", k)
		}
	}
}

// mayStay reports whether a policy that nobody wants may be there.
func (w *world) mayStay(p *networkingv1.NetworkPolicy) bool {
	service := ServiceOfPolicy(p)
	s, own := w.services[service.Namespace][service.Name], w.namespaces[service.Namespace]
	return s != nil && !s.inactive && (own == nil || own.handled && w.staysLocked(s, existingOf(p)))
}

func (w *world) wants(service, policy types.NamespacedName) bool {
	return slices.ContainsFunc(w.Wanted(service), func(p *Policy) bool { return p.NamespacedName == policy })
}

func digests(all []*Policy) []string {
	var texts []string
	for _, p := range all {
		texts = append(texts, fmt.Sprintf("%s %x", p, p.Digest()))
	}
	return texts
}

// Property: two Services have no wanted name in common, unless their namespaces and names are the same when they are joined.
func TestPropertyNamesAreUnique(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, Options{})
		for _, name := range propertyNamespaces {
			w.SetNamespace(namespaceObject(name, "x=1"))
		}
		owner := map[types.NamespacedName]types.NamespacedName{}
		for range rapid.IntRange(1, 6).Draw(rt, "services") {
			k := key(rapid.SampledFrom(propertyNamespaces).Draw(rt, "namespace"), rapid.SampledFrom(propertyServices).Draw(rt, "service"))
			w.SetService(drawService(rt, k.Namespace, k.Name))
			seen := map[types.NamespacedName]bool{}
			for _, p := range w.Wanted(k) {
				expect.False(rt, seen[p.NamespacedName], "%s is wanted twice for %s", p, k)
				seen[p.NamespacedName] = true
				other, taken := owner[p.NamespacedName]
				if taken && other != k && p.Namespace != k.Namespace && other.Namespace+"-"+other.Name == k.Namespace+"-"+k.Name {
					continue
				}
				owner[p.NamespacedName] = k
			}
		}
	})
}
