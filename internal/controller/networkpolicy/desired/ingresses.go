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
	if x.ingresses[key.Namespace] == nil {
		x.ingresses[key.Namespace] = map[string][]Backend{}
	}
	x.ingresses[key.Namespace][key.Name] = backends
	if len(backends) == 0 {
		delete(x.ingresses[key.Namespace], key.Name)
	}
	if len(x.ingresses[key.Namespace]) == 0 {
		delete(x.ingresses, key.Namespace)
	}
	return backendRequests(key.Namespace, slices.Concat(old, backends))
}

// RemoveIngress removes an Ingress.
func (x *Index) RemoveIngress(namespace, name string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.setIngressLocked(types.NamespacedName{Namespace: namespace, Name: name}, nil)
}

// RetainIngresses removes the Ingresses of a namespace (of all if it is empty) that a list no longer has.
func (x *Index) RetainIngresses(namespace string, has Has) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	var requests []Request
	for in, ingresses := range x.ingresses {
		for name := range ingresses {
			if isIn(namespace, in) && !has(in, name) {
				requests = append(requests, x.setIngressLocked(types.NamespacedName{Namespace: in, Name: name}, nil)...)
			}
		}
	}
	return requests
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
