package targets

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// feed hands the events of one informer to the followers of single namespaces. A handler of the informer for each
// follower would cost two goroutines, and each event would go to all handlers.
//
// Invariant: each follower gets the events of its namespace in their order, after one event for each object that is
// there when it begins. The panic of a follower is passed to its function panicked, and does not affect other
// followers.
type feed struct {
	mu        sync.Mutex
	known     map[string]map[string]any
	followers map[string]map[*follower]struct{}
}

// follower is a handler of the events of a namespace.
type follower struct {
	cache.ResourceEventHandler
	panicked func(any)
}

func newFeed() *feed {
	return &feed{known: map[string]map[string]any{}, followers: map[string]map[*follower]struct{}{}}
}

// follow calls the handler for each object that exists, and for each later event, until the returned function is
// called.
func (f *feed) follow(namespace string, handler cache.ResourceEventHandler, panicked func(any)) (end func()) {
	its := &follower{handler, panicked}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers[namespace] == nil {
		f.followers[namespace] = map[*follower]struct{}{}
	}
	f.followers[namespace][its] = struct{}{}
	for _, object := range f.known[namespace] {
		its.tell(func() { its.OnAdd(object, true) })
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers[namespace], its)
		if len(f.followers[namespace]) == 0 {
			delete(f.followers, namespace)
		}
	}
}

// tell calls a handler; it never waits for anything but locks that are held for moments.
func (f *follower) tell(event func()) {
	defer func() {
		if cause := recover(); cause != nil {
			f.panicked(cause)
		}
	}()
	event()
}

// OnAdd implements cache.ResourceEventHandler.
func (f *feed) OnAdd(object any, initial bool) {
	f.change(object, object, func(its *follower) { its.OnAdd(object, initial) })
}

// OnUpdate implements cache.ResourceEventHandler.
func (f *feed) OnUpdate(before, after any) {
	f.change(after, after, func(its *follower) { its.OnUpdate(before, after) })
}

// OnDelete implements cache.ResourceEventHandler.
func (f *feed) OnDelete(object any) {
	named := object
	if lost, is := object.(cache.DeletedFinalStateUnknown); is {
		named = lost.Obj
	}
	f.change(named, nil, func(its *follower) { its.OnDelete(object) })
}

// change records the present object, nil for none, and notifies the followers of its namespace.
func (f *feed) change(named, now any, tell func(*follower)) {
	object, is := named.(metav1.Object)
	if !is {
		return
	}
	namespace, name := object.GetNamespace(), object.GetName()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now == nil {
		delete(f.known[namespace], name)
		if len(f.known[namespace]) == 0 {
			delete(f.known, namespace)
		}
	} else {
		if f.known[namespace] == nil {
			f.known[namespace] = map[string]any{}
		}
		f.known[namespace][name] = now
	}
	for its := range f.followers[namespace] {
		its.tell(func() { tell(its) })
	}
}
