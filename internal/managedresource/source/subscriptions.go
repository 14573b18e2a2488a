package source

import (
	"k8s.io/apimachinery/pkg/types"
)

// subscriber has the functions that are called for changes of the Secrets of one namespace.
type subscriber struct {
	onChange func(types.NamespacedName, string)
	onGap    func()
}

// SubscribeNamespace is Subscribe for the Secrets of one namespace, for any number of subscribers: one watch then
// serves many targets. The returned function ends the subscription; a call that is under way then may still come.
func (s *Secrets) SubscribeNamespace(namespace string, onChange func(key types.NamespacedName, version string),
	onGap func()) (unsubscribe func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscribers == nil {
		s.subscribers = map[string]map[*subscriber]struct{}{}
	}
	if s.subscribers[namespace] == nil {
		s.subscribers[namespace] = map[*subscriber]struct{}{}
	}
	its := &subscriber{onChange, onGap}
	s.subscribers[namespace][its] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subscribers[namespace], its)
		if len(s.subscribers[namespace]) == 0 {
			delete(s.subscribers, namespace)
		}
	}
}

// subscribersLocked returns the functions to call for a change of a Secret in a namespace.
func (s *Secrets) subscribersLocked(namespace string) []func(types.NamespacedName, string) {
	subscribers := []func(types.NamespacedName, string){s.onChange}
	for its := range s.subscribers[namespace] {
		subscribers = append(subscribers, its.onChange)
	}
	return subscribers
}

// gapLocked returns the functions to call for a gap in a watch.
func (s *Secrets) gapLocked() []func() {
	subscribers := []func(){s.onGap}
	for _, some := range s.subscribers {
		for its := range some {
			subscribers = append(subscribers, its.onGap)
		}
	}
	return subscribers
}
