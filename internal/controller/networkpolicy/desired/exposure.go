package desired

import (
	"crypto/sha256"
	"encoding/hex"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Backend is a port of a Service that an Ingress or a VirtualService routes to, by its name or its number.
type Backend struct {
	Service string
	Name    string
	Number  int32
}

// BackendsOf returns the backends of an Ingress in its namespace, each once: the backends of its rules, and the
// default backend. Only Services count as backends (NP-46).
func BackendsOf(o *networkingv1.Ingress) []Backend {
	var all []Backend
	seen := map[Backend]bool{}
	add := func(b *networkingv1.IngressBackend) {
		if b == nil || b.Service == nil {
			return
		}
		backend := Backend{b.Service.Name, b.Service.Port.Name, b.Service.Port.Number}
		if !seen[backend] {
			seen[backend] = true
			all = append(all, backend)
		}
	}
	add(o.Spec.DefaultBackend)
	for i := range o.Spec.Rules {
		if o.Spec.Rules[i].HTTP == nil {
			continue
		}
		for j := range o.Spec.Rules[i].HTTP.Paths {
			add(&o.Spec.Rules[i].HTTP.Paths[j].Backend)
		}
	}
	return all
}

// targetOf returns the port in the Pods for a backend's port (NP-47: the first port of the Service with the same name
// or number). An empty name is no port's.
func (s *Service) targetOf(b Backend) (target, bool) {
	for i := range s.ports {
		if b.Name != "" && s.ports[i].name == b.Name || b.Name == "" && b.Number != 0 && s.ports[i].number == b.Number {
			return s.ports[i].target, true
		}
	}
	return target{}, false
}

// IngressController selects the Pods of the ingress controller.
type IngressController struct {
	Namespace   string
	PodSelector metav1.LabelSelector
}

// controllerPolicies returns the policies of a Service for ports that Ingresses route to (NP-16).
func (s *Service) controllerPolicies(backends []Backend, controller *IngressController, format DescriptionFormat) []*Policy {
	clients := peers{controller.Namespace, controller.PodSelector, true}
	var all []*Policy
	for _, t := range s.targetsOf(backends) {
		id := s.Name + "-" + t.id()
		egress := egressTo + id + fromIngressController
		if controller.Namespace != s.Namespace {
			egress = egressTo + s.Namespace + "-" + id + fromIngressController
		}
		all = append(all,
			s.allowIngress(ingressTo+id+fromIngressController, t, clients, format),
			s.allowEgress(egress, t, clients, format))
	}
	return all
}

// targetsOf returns the targets of backends, each once.
func (s *Service) targetsOf(backends []Backend) []target {
	var all []target
	seen := map[target]bool{}
	for _, backend := range backends {
		if t, found := s.targetOf(backend); found && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// route is a route to a port of a Service from the Pods of a Gateway in a namespace. selector is the Gateway's, as
// text.
type route struct {
	backend             Backend
	namespace, selector string
	labels              map[string]string
}

// gatePolicies returns the policies of a Service for ports that VirtualServices route to through Gateways (NP-17).
// Two Gateways with different Pods in one namespace have two policies there: the name of the second one ends with a
// digest of its selector.
func (s *Service) gatePolicies(routes []route, format DescriptionFormat) []*Policy {
	type place struct {
		namespace string
		target    target
	}
	seen := map[place]map[string]bool{}
	var all []*Policy
	for _, r := range routes {
		t, found := s.targetOf(r.backend)
		at := place{r.namespace, t}
		if !found || seen[at][r.selector] {
			continue
		}
		more := ""
		if seen[at] == nil {
			seen[at] = map[string]bool{}
		} else {
			more = "-" + selectorDigest(r.selector)
		}
		seen[at][r.selector] = true
		id := s.Name + "-" + t.id()
		ingress, egress := ingressTo+id+from+r.namespace, egressTo+s.Namespace+"-"+id+fromIstio+more
		if r.namespace == s.Namespace {
			ingress, egress = ingressTo+id+fromIstio, egressTo+id+fromIstio+more
		}
		clients := peers{namespace: r.namespace, selector: metav1.LabelSelector{MatchLabels: r.labels}}
		all = append(all, s.allowIngress(ingress, t, clients, format), s.allowEgress(egress, t, clients, format))
	}
	return all
}

func selectorDigest(selector string) string {
	digest := sha256.Sum256([]byte(selector))
	return hex.EncodeToString(digest[:])[:5]
}
