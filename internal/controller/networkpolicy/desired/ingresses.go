package desired

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetIngress reports an Ingress that is new or changed (NP-43: of the old one and the new one, all Services that they lead to).
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

// ingressBackendsLocked returns where Ingresses lead to in a Service, in a stable order.
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

// backendRequests ask for the Services of backends in a namespace.
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
