package kit

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/reflector"
)

// Index receives the events of objects of some kinds, and returns the requests that each event concerns.
type Index[K, R any] interface {
	// Complete records that the first lists of a kind have been delivered.
	Complete(kind K) []R
	Remove(kind K, namespace, name string) []R
	// Retain removes the objects of a namespace (of all if it is empty) that a list no longer has.
	Retain(kind K, namespace string, has func(namespace, name string) bool) []R
}

// Followed is a kind whose objects an index receives.
type Followed[K, R any] struct {
	Kind     K
	Resource schema.GroupVersionResource
	Client   rest.Interface
	// Selector selects objects by labels; empty means all. Whole has the meaning of reflector.Kind.Whole.
	Selector string
	Whole    bool
	Objects  Objects[R]
	// Undecodable, if set, is called for each object that cannot be decoded.
	Undecodable func(namespace, name string, err error)
}

// Objects are the objects of a kind.
type Objects[R any] struct {
	fresh func() runtime.Object
	set   func(runtime.Object) []R
}

// ObjectsOf returns the Objects of a kind, from the method of an index that receives them.
func ObjectsOf[T, R any, P interface {
	*T
	runtime.Object
}](set func(P) []R) Objects[R] {
	return Objects[R]{func() runtime.Object { return P(new(T)) }, func(object runtime.Object) []R { return set(object.(P)) }}
}

// Follow watches a kind in some namespaces. It calls notify with each event.
func Follow[K, R any](
	ctx context.Context, in []string, x Index[K, R], f Followed[K, R], notify func(func() []R), clock clock.WithTicker, log logr.Logger,
) {
	left := &atomic.Int64{}
	left.Store(int64(len(in)))
	for _, namespace := range in {
		reflector.New(reflector.Kind{
			Name: f.Resource.Resource, Resource: f.Resource, Namespace: namespace, LabelSelector: f.Selector, Whole: f.Whole, Undecodable: f.Undecodable,
			New:    f.Objects.fresh,
			Set:    func(object runtime.Object) { notify(func() []R { return f.Objects.set(object) }) },
			Remove: func(namespace, name string) { notify(func() []R { return x.Remove(f.Kind, namespace, name) }) },
			Retain: func(names reflector.Names) { notify(func() []R { return x.Retain(f.Kind, namespace, names.Has) }) },
			First: func() {
				if left.Add(-1) == 0 {
					notify(func() []R { return x.Complete(f.Kind) })
				}
			},
		}, f.Client, clock, log).Start(ctx)
	}
}

// Watched returns the namespaces to watch. An empty name means all namespaces.
func Watched(namespaces []string) []string {
	if len(namespaces) == 0 || slices.Contains(namespaces, "") {
		return []string{""}
	}
	return namespaces
}
