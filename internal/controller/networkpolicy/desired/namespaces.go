package desired

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// SetNamespace records a Namespace that is new or changed.
func (x *Index) SetNamespace(o metav1.Object) []Request {
	x.mu.Lock()
	defer x.mu.Unlock()
	name, old := o.GetName(), x.namespaces[o.GetName()]
	fresh := &namespace{labels: o.GetLabels(), terminating: o.GetDeletionTimestamp() != nil}
	fresh.handled = x.handles(fresh.labels)
	if old != nil && old.terminating == fresh.terminating && maps.Equal(old.labels, fresh.labels) {
		return nil
	}
	x.namespaces[name] = fresh
	return x.namespaceChangedLocked(name, old, fresh)
}

func (x *Index) removeNamespaceLocked(name string) []Request {
	old := x.namespaces[name]
	if old == nil {
		return nil
	}
	delete(x.namespaces, name)
	return x.namespaceChangedLocked(name, old, nil)
}

func (x *Index) handles(set labels.Set) bool {
	return len(x.options.Handled) == 0 || slices.ContainsFunc(x.options.Handled, func(s labels.Selector) bool { return s.Matches(set) })
}

// namespaceChangedLocked returns the requests that a change of a Namespace affects (NP-41): the Services in it, and
// for each Service that allows or allowed it as a client, the policies of the two. nil is a missing Namespace.
func (x *Index) namespaceChangedLocked(name string, old, fresh *namespace) []Request {
	var requests []Request
	was, is := old != nil && !old.terminating, fresh != nil && !fresh.terminating
	if was != is || old != nil && fresh != nil && old.handled != fresh.handled {
		for service := range x.services[name] {
			requests = append(requests, Request{Service: types.NamespacedName{Namespace: name, Name: service}})
		}
	}
	for _, g := range x.groups {
		before, now := g.namespaces[name], fresh != nil && g.matches(fresh.labels)
		if now {
			g.namespaces[name] = true
		} else {
			delete(g.namespaces, name)
		}
		if before == now && was == is {
			continue
		}
		if before || now {
			for service := range g.services {
				if service.Namespace != name {
					requests = append(requests, Request{Service: service, Peer: name})
				}
			}
		}
	}
	if was != is {
		requests = append(requests, x.exposedToLocked(name)...)
	}
	if old != nil && !was && is {
		requests = append(requests, x.keptForLocked(name)...)
	}
	return requests
}

// keptForLocked returns requests for the policies that were kept while a namespace was terminating: a new namespace
// of that name exists, and its labels may differ.
func (x *Index) keptForLocked(name string) []Request {
	var requests []Request
	for service, policies := range x.observed {
		if service.Namespace != name && len(policies.of(name)) > 0 {
			requests = append(requests, Request{Service: service, Peer: name})
		}
	}
	return requests
}

// exposedToLocked returns requests for the Services that Pods in a namespace reach as an ingress controller or a
// Gateway of Istio.
func (x *Index) exposedToLocked(name string) []Request {
	var requests []Request
	if c := x.options.IngressController; c != nil && c.Namespace == name {
		for namespace, in := range x.ingresses {
			for _, backends := range in {
				requests = append(requests, backendRequests(namespace, backends)...)
			}
		}
	}
	if x.istio.hasGate(name) {
		requests = append(requests, x.exposedByIstioLocked()...)
	}
	return requests
}

// isWatched reports whether the index receives the events of a namespace.
func (x *Index) isWatched(namespace string) bool {
	return len(x.options.Watched) == 0 || slices.Contains(x.options.Watched, namespace) || slices.Contains(x.options.Watched, corev1.NamespaceAll)
}

// isOpenLocked reports whether a namespace exists and is not terminating.
func (x *Index) isOpenLocked(name string) bool {
	n := x.namespaces[name]
	return n != nil && !n.terminating
}

// isWritableLocked reports whether policies may be written to a namespace: it is open (NP-6: no create may hit a
// terminating namespace), and its content is known.
func (x *Index) isWritableLocked(name string) bool { return x.isOpenLocked(name) && x.isWatched(name) }

// isTerminatingLocked reports whether a namespace is being deleted. Its policies stay until it is gone, because its
// Pods still need them.
func (x *Index) isTerminatingLocked(name string) bool {
	n := x.namespaces[name]
	return n != nil && n.terminating
}

// clientsOfLocked returns the namespaces whose Pods may use a Service, without its own.
func (x *Index) clientsOfLocked(s *Service) map[string]bool {
	if g := x.groups[s.clients]; g != nil && s.clients != "" {
		return g.namespaces
	}
	return nil
}
