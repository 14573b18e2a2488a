package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// pods has the labels of Pods that request access, if policies depend on them.
type pods struct {
	keys map[types.NamespacedName][]string
	// count has the number of Pods by namespace and label.
	count map[string]map[string]int
}

func newPods() pods {
	return pods{map[types.NamespacedName][]string{}, map[string]map[string]int{}}
}

func (p *pods) has(namespace, key string) bool { return p.count[namespace][key] > 0 }

// set replaces the labels of a Pod, and returns the labels that its namespace has for the first time, or no longer
// has.
func (p *pods) set(pod types.NamespacedName, keys []string) []string {
	old := p.keys[pod]
	if slices.Equal(old, keys) {
		return nil
	}
	var changed []string
	count := p.count[pod.Namespace]
	if count == nil {
		count = map[string]int{}
		p.count[pod.Namespace] = count
	}
	for _, key := range keys {
		if count[key]++; count[key] == 1 {
			changed = append(changed, key)
		}
	}
	for _, key := range old {
		if count[key]--; count[key] == 0 {
			delete(count, key)
			if i := slices.Index(changed, key); i >= 0 {
				changed = slices.Delete(changed, i, i+1)
			} else {
				changed = append(changed, key)
			}
		}
	}
	if len(count) == 0 {
		delete(p.count, pod.Namespace)
	}
	if len(keys) == 0 {
		delete(p.keys, pod)
	} else {
		p.keys[pod] = keys
	}
	return changed
}

// SetPod records the labels of a Pod (NP-33; only the value "allowed" counts, so that a change from "denied" to
// "allowed" is a change).
func (x *Index) SetPod(namespace, name string, labels map[string]string) []Request {
	var keys []string
	for key, value := range labels {
		if value == Allowed && IsPodLabel(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.podChangedLocked(types.NamespacedName{Namespace: namespace, Name: name}, keys)
}

// podChangedLocked returns requests for the Services whose policies in the Pod's namespace are affected (NP-35).
func (x *Index) podChangedLocked(pod types.NamespacedName, keys []string) []Request {
	changed := x.pods.set(pod, keys)
	if len(changed) == 0 || !x.options.OnlyForExistingPods {
		return nil
	}
	var requests []Request
	ask := func(s *Service) {
		if s != nil && !s.inactive && s.asks(pod.Namespace, changed) {
			requests = append(requests, Request{Service: s.NamespacedName, Peer: pod.Namespace})
		}
	}
	for _, s := range x.services[pod.Namespace] {
		ask(s)
	}
	for _, g := range x.groups {
		if !g.namespaces[pod.Namespace] {
			continue
		}
		for service := range g.services {
			if service.Namespace != pod.Namespace {
				ask(x.serviceLocked(service))
			}
		}
	}
	return requests
}
