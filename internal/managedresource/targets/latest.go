package targets

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// latest has the latest form of each namespace that an informer tells of.
type latest struct {
	mu    sync.Mutex
	known map[string]metav1.Object
}

func newLatest() *latest { return &latest{known: map[string]metav1.Object{}} }

// get returns a namespace; nil if there is none by the name.
func (l *latest) get(name string) metav1.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name]
}

// names returns those of all namespaces.
func (l *latest) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.known))
}

// handler notes the object of each event, and then calls changed with its name.
func (l *latest) handler(changed func(string)) toolscache.ResourceEventHandler {
	note := func(told any, there bool) {
		if lost, is := told.(toolscache.DeletedFinalStateUnknown); is {
			told = lost.Obj
		}
		object, is := told.(metav1.Object)
		if !is {
			return
		}
		l.mu.Lock()
		if there {
			l.known[object.GetName()] = object
		} else {
			delete(l.known, object.GetName())
		}
		l.mu.Unlock()
		changed(object.GetName())
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { note(object, true) }, UpdateFunc: func(_, object any) { note(object, true) }, DeleteFunc: func(object any) { note(object, false) },
	}
}
