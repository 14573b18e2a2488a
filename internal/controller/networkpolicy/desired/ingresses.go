package desired

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetIngress records an Ingress that is new or changed (NP-43: it affects the Services of the old and the new
// version).
func (x *Index) SetIngress(o *networkingv1.Ingress) []Request {
	backends := BackendsOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.setIngressLocked(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, backends)
}

func (x *Index) setIngressLocked(key types.NamespacedName, backends []Backend) []Request {
	old := x.ingresses[key.Namespace][key.Name]
	if slices.Equal(old, backends) {
		return nil
	}
	if x.ingresses.Set(key.Namespace, key.Name, backends); len(backends) == 0 {
		x.ingresses.Delete(key.Namespace, key.Name)
	}
	return backendRequests(key.Namespace, slices.Concat(old, backends))
}

// ingressBackendsLocked returns the ports of a Service that Ingresses route to, in a stable order.
func (x *Index) ingressBackendsLocked(service types.NamespacedName) []Backend {
	var all []Backend
	for _, backends := range x.ingresses[service.Namespace] {
		for _, b := range backends {
			if b.Service == service.Name {
				all = append(all, b)
			}
		}
	}
	return sortedBackends(all)
}

// backendRequests returns requests for the Services of backends in a namespace.
func backendRequests(namespace string, backends []Backend) []Request {
	var requests []Request
	for _, b := range backends {
		request := Request{Service: types.NamespacedName{Namespace: namespace, Name: b.Service}}
		if !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}
