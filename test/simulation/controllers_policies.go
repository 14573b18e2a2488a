package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/networkpolicy/desired"
	"github.com/espalier-project/espalier/test/fake"
)

// Invariants of the NetworkPolicy controller.
const (
	independent      = "the policies of one Service do not depend on another's"
	writesPolicies   = "only policies that a Service wants are written"
	sparesPolicies   = "no policy is deleted that is wanted, or of nobody"
	becomePolicies   = "the policies become what the Services want"
	policiesToRest   = "without news no policy is written or read"
	serviceNameLabel = desired.LabelServiceName
	serviceIn        = desired.LabelServiceNamespace
)

// policies is a world of Services in namespaces that come and go.
type policies struct {
	*stage
	// desired is what each policy should be, and since when.
	desired map[fake.Key]desire
	// inputs is what was computed from, so that it is done only once, and latest when that changed.
	inputs string
	latest time.Time
}

type desire struct {
	digest desired.Digest
	since  time.Time
}

func newPolicies(s *stage) act {
	return &policies{stage: s, desired: map[fake.Key]desire{}}
}

var (
	handledNamespaces = metav1.LabelSelector{MatchLabels: map[string]string{"handled": "yes"}}
	ingressController = config.IngressControllerSelector{Namespace: "nc", PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "ingress"}}}
)

func (p *policies) configure(cfg *config.ResourceManagerConfiguration) {
	cfg.Controllers.NetworkPolicy = config.NetworkPolicyControllerConfig{
		Enabled: true, NamespaceSelectors: []metav1.LabelSelector{handledNamespaces}, IngressControllerSelector: &ingressController,
	}
}

// options are those of an index for the same configuration.
func policyOptions() desired.Options {
	return desired.Options{
		Handled:           []labels.Selector{labels.SelectorFromSet(handledNamespaces.MatchLabels)},
		IngressController: &desired.IngressController{Namespace: ingressController.Namespace, PodSelector: ingressController.PodSelector},
	}
}

var (
	spaces      = []string{"na", "nb", "nc"}
	serviceKeys = []fake.Key{keyOf("", "services", "na", "s0"), keyOf("", "services", "na", "s1"), keyOf("", "services", "nb", "s0")}
)

func spaceKey(i int) fake.Key { return keyOf("", "namespaces", "", spaces[i%len(spaces)]) }

func (p *policies) populate() {
	for i := range spaces {
		p.do(Step{Do: "namespace", A: i, B: i})
	}
	for i := range serviceKeys {
		p.do(Step{Do: "service", A: i, B: i})
	}
}

func (p *policies) do(step Step) {
	service := serviceKeys[step.A%len(serviceKeys)]
	switch step.Do {
	case "namespace":
		key := spaceKey(step.A)
		set := object{corev1.LabelMetadataName: key.Name}
		if step.B%4 != 3 {
			set["handled"] = "yes"
		}
		if step.B%2 == 0 {
			set["client"] = "yes"
		}
		p.put(p.target, key, object{"metadata": object{"labels": set, "finalizers": []any{"example.org/content"}}})
	case "namespace-end":
		p.remove(p.target, spaceKey(step.A))
	case "service":
		annotations := object{}
		const prefix = "networking.resources.gardener.cloud/"
		if step.B%3 != 0 {
			annotations[prefix+"namespace-selectors"] = `[{"matchLabels":{"client":"yes"}}]`
		}
		switch step.B % 5 {
		case 1:
			annotations[prefix+"from-world-to-ports"] = `[{"port":"443","protocol":"TCP"}]`
		case 2:
			annotations[prefix+"from-x-allowed-ports"] = `[{"port":8080,"protocol":"TCP"}]`
		}
		var ports []any
		for i := range 1 + step.B%2 {
			ports = append(ports, object{"name": fmt.Sprintf("p%d", i), "protocol": "TCP", "port": int64(80 + i), "targetPort": int64(8080 + (step.B+i)%3)})
		}
		spec := object{"ports": ports, "selector": object{"app": fmt.Sprintf("%s-%d", service.Name, step.B%2)}}
		if step.B == 8 {
			delete(spec, "selector")
		}
		p.put(p.target, service, object{"metadata": object{"annotations": annotations}, "spec": spec})
	case "service-delete":
		p.remove(p.target, service)
	case "ingress":
		key := keyOf("networking.k8s.io", "ingresses", service.Namespace, "i")
		if step.B%3 == 0 {
			p.remove(p.target, key)
			return
		}
		p.put(p.target, key, object{"spec": object{"rules": []any{object{"http": object{"paths": []any{object{"backend": object{"service": object{"name": service.Name, "port": object{"name": "p0"}}}}}}}}}})
	case "orphan":
		p.put(p.target, keyOf("networking.k8s.io", "networkpolicies", service.Namespace, "orphan"), object{
			"metadata": object{"labels": object{serviceNameLabel: fmt.Sprintf("gone%d", step.B%2), serviceIn: service.Namespace}}, "spec": object{"podSelector": object{}},
		})
	case "edit", "delete", "strip":
		p.tamper(step)
	}
}

// tamper has somebody change a policy.
func (p *policies) tamper(step Step) {
	p.lock.Lock()
	var keys []fake.Key
	for key := range p.target.AllLocked() {
		if key.Resource == "networkpolicies" {
			keys = append(keys, key)
		}
	}
	p.lock.Unlock()
	if len(keys) == 0 {
		return
	}
	slices.SortFunc(keys, func(a, b fake.Key) int { return strings.Compare(a.String(), b.String()) })
	key := keys[(step.A*3+step.B)%len(keys)]
	switch step.Do {
	case "delete":
		p.remove(p.target, key)
	case "edit":
		p.patch(p.target, key, object{"metadata": object{"labels": object{"somebodys": "stays"}}, "spec": object{"ingress": []any{}}})
	case "strip":
		p.patch(p.target, key, object{"metadata": object{"labels": object{[]string{serviceNameLabel, serviceIn}[step.B%2]: nil}}})
	}
}

// play ends namespaces, with all that is in them.
func (p *policies) play(objects map[fake.Key]object) {
	for i := range spaces {
		namespace := objects[spaceKey(i)]
		if fake.Text(namespace, "metadata", "deletionTimestamp") == "" {
			continue
		}
		for key := range objects {
			if key.Namespace == spaces[i] {
				p.remove(p.target, key)
			}
		}
		time.Sleep(time.Duration(p.chance("namespace end")%3000) * time.Millisecond)
		o := runtime.DeepCopyJSON(namespace)
		delete(fake.Meta(o), "finalizers")
		delete(fake.Meta(o), "resourceVersion")
		p.request(p.target, http.MethodPut, p.pathOf(p.target, spaceKey(i)), o)
	}
}

func (p *policies) look() {
	inputs := ""
	objects := p.target.AllLocked()
	var keys []fake.Key
	for key := range objects {
		switch key.Resource {
		case "services", "namespaces", "ingresses":
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b fake.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		inputs += key.String() + fake.Text(objects[key], "metadata", "uid") + fake.Text(objects[key], "metadata", "resourceVersion") + "\n"
	}
	if inputs == p.inputs {
		return
	}
	p.inputs, p.latest = inputs, time.Now()
	now := map[fake.Key]desired.Digest{}
	together := p.index(keys, nil)
	for _, service := range keys {
		if service.Resource != "services" {
			continue
		}
		o := typed[corev1.Service](objects[service])
		name := desired.ServiceOf(o).NamespacedName
		alone := map[fake.Key]desired.Digest{}
		for _, policy := range p.index(keys, &service).Wanted(name) {
			alone[keyOf("networking.k8s.io", "networkpolicies", policy.Namespace, policy.Name)] = policy.Digest()
		}
		count := 0
		for _, policy := range together.Wanted(name) {
			count++
			if key := keyOf("networking.k8s.io", "networkpolicies", policy.Namespace, policy.Name); alone[key] != policy.Digest() {
				p.violateLocked(independent, "%s of %s is another one because of other Services", key, service)
			}
		}
		if count != len(alone) {
			p.violateLocked(independent, "%s has %d policies alone, and %d among others", service, len(alone), count)
		}
		maps.Copy(now, alone)
	}
	for key, digest := range now {
		if p.desired[key].digest != digest || p.desired[key].since.IsZero() {
			p.desired[key] = desire{digest, time.Now()}
		}
	}
	for key := range p.desired {
		if _, still := now[key]; !still {
			delete(p.desired, key)
		}
	}
}

// index returns an index that was told of what there is; of one Service only, if it is given.
func (p *policies) index(keys []fake.Key, only *fake.Key) *desired.Index {
	x := desired.NewIndex(policyOptions())
	for _, key := range keys {
		o := p.target.GetLocked(key)
		switch {
		case key.Resource == "namespaces":
			x.SetNamespace(typed[corev1.Namespace](o))
		case key.Resource == "ingresses":
			x.SetIngress(typed[networkingv1.Ingress](o))
		case only == nil || key == *only:
			x.SetService(typed[corev1.Service](o))
		}
	}
	return x
}

// serviceOf is the Service that the labels of a policy name; empty if they name none.
func serviceOf(policy object) string {
	name, in := fake.Text(policy, "metadata", "labels", serviceNameLabel), fake.Text(policy, "metadata", "labels", serviceIn)
	if name == "" || in == "" {
		return ""
	}
	return in + "/" + name
}

func (p *policies) changed(cluster string, c fake.Change) {
	if !isInstance(c.By) || c.Key.Resource == "events" && c.Verb == "create" {
		return
	}
	what := fmt.Sprintf("%s %ss %s %s", c.By, c.Verb, cluster, c.Key)
	if cluster != "target" || c.Key.Resource != "networkpolicies" {
		p.violateLocked(writesPolicies, "%s", what)
		return
	}
	wanted, isWanted := p.desired[c.Key]
	if c.Verb == "delete" {
		switch {
		case serviceOf(c.Before) == "":
			p.violateLocked(sparesPolicies, "%s, which is of no Service: %s", what, shown(c.Before))
		case isWanted && time.Since(wanted.since) > patience+p.lag && !p.excused():
			p.violateLocked(sparesPolicies, "%s, which is wanted since %v", what, wanted.since.Sub(p.begin))
		}
		return
	}
	// For a while it may know what one object is and another one was.
	if !isWanted && time.Since(p.latest) > patience+p.lag && !p.excused() {
		p.violateLocked(writesPolicies, "%s, which nobody wants", what)
	}
	if before := serviceOf(c.Before); before != "" && before != serviceOf(c.After) {
		p.violateLocked(writesPolicies, "%s: it was of %s and is of %s", what, before, serviceOf(c.After))
	}
	if fake.Text(c.Before, "metadata", "labels", "somebodys") != fake.Text(c.After, "metadata", "labels", "somebodys") && c.Before != nil {
		p.violateLocked(writesPolicies, "%s: somebody's label is gone", what)
	}
}

func (p *policies) settled() {
	p.lock.Lock()
	for key := range p.desired {
		o := p.target.GetLocked(key)
		if o == nil {
			p.violateLocked(becomePolicies, "%s is missing", key)
		} else if desired.DigestOf(typed[networkingv1.NetworkPolicy](o)) != p.desired[key].digest {
			p.violateLocked(becomePolicies, "%s is not what it should be: %s", key, shown(o))
		}
	}
	for key, o := range p.target.AllLocked() {
		if _, wanted := p.desired[key]; key.Resource == "networkpolicies" && serviceOf(o) != "" && !wanted {
			p.violateLocked(becomePolicies, "%s is there, and nobody wants it", key)
		}
	}
	p.lock.Unlock()
	p.countFrom()
	time.Sleep(idle)
	p.mu.Lock()
	sent := maps.Clone(p.asks)
	p.mu.Unlock()
	if len(sent) > 0 {
		p.violate(policiesToRest, "requests in %v: %v", idle, sent)
	}
}
