package networkpolicy

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetIngress tells of an Ingress that is new or changed (NP-43: of the old one and the new one, all Services that they lead to).
func (x *Index) SetIngress(o *networkingv1.Ingress) []Request {
	backends := BackendsOf(o)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.setIngressLocked(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, backends)
}

func (x *Index) setIngressLocked(key types.NamespacedName, backends []Backend) []Request {
	old := x.ingresses[key]
	if slices.Equal(old, backends) {
		return nil
	}
	if len(backends) == 0 {
		delete(x.ingresses, key)
	} else {
		x.ingresses[key] = backends
	}
	return backendRequests(key.Namespace, slices.Concat(old, backends))
}

// RemoveIngress tells that an Ingress is gone.
func (x *Index) RemoveIngress(namespace, name string) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.setIngressLocked(types.NamespacedName{Namespace: namespace, Name: name}, nil)
}

// ReplaceIngresses tells which Ingresses there are in a namespace, or everywhere if it is empty.
func (x *Index) ReplaceIngresses(namespace string, list []*networkingv1.Ingress) []Request {
	kept := map[types.NamespacedName]bool{}
	var requests []Request
	for _, o := range list {
		kept[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = true
		requests = append(requests, x.SetIngress(o)...)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for key := range x.ingresses {
		if isIn(namespace, key.Namespace) && !kept[key] {
			requests = append(requests, x.setIngressLocked(key, nil)...)
		}
	}
	return requests
}

// ingressBackendsLocked returns where Ingresses lead to in a Service, in a stable order.
func (x *Index) ingressBackendsLocked(service types.NamespacedName) []Backend {
	var all []Backend
	for key, backends := range x.ingresses {
		if key.Namespace != service.Namespace {
			continue
		}
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
