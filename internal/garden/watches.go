package garden

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/relation"
)

// Watches keeps graphs as the garden is.
type Watches struct {
	client *Client
	graphs []Graph
	clock  clock.Clock
	log    logr.Logger
	// lag is told how long an event took from its arrival until the graph had it.
	lag    func(kind string, took time.Duration)
	each   []*follower
	tidied atomic.Bool
}

// follower follows one kind of objects. It is the store of a reflector.
type follower struct {
	kind     string
	resource schema.GroupVersionResource
	example  runtime.Object
	// shape is what is decoded of the objects; nil for kinds of Kubernetes' own.
	shape   *shape
	set     func(runtime.Object)
	remove  func(namespace, name string)
	replace func([]runtime.Object)

	lag func(time.Duration)
	// first is called when the first list is in the graph.
	first func()
	// arrived is when the last event came; the reflector works on it before the next one is read.
	arrived atomic.Pointer[time.Time]
	synced  atomic.Bool
}

// Graph is a state with the table that it is made of.
type Graph struct {
	State *relation.State
	Table relation.Table
}

// NewWatches prepares the watches of everything that the graphs need, each kind once.
func NewWatches(client *Client, graphs []Graph, c clock.Clock, lag func(kind string, took time.Duration), log logr.Logger) *Watches {
	w := &Watches{client: client, graphs: graphs, clock: c, log: log, lag: lag}
	w.add(namespaces(graphs))
	for kind := range relation.Schema.Names {
		if f := followerOf(graph.Kind(kind), graphs); f != nil {
			w.add(f)
		}
	}
	return w
}

func namespaces(graphs []Graph) *follower {
	return &follower{
		kind: "Namespace", resource: corev1.SchemeGroupVersion.WithResource("namespaces"), example: &corev1.Namespace{},
		set: func(object runtime.Object) {
			for _, g := range graphs {
				g.State.SetNamespace(object.(*corev1.Namespace))
			}
		},
		remove: func(_, name string) {
			for _, g := range graphs {
				g.State.DeleteNamespace(name)
			}
		},
		replace: func(objects []runtime.Object) {
			namespaces := make([]*corev1.Namespace, 0, len(objects))
			for _, object := range objects {
				namespaces = append(namespaces, object.(*corev1.Namespace))
			}
			for _, g := range graphs {
				g.State.ReplaceNamespaces(namespaces)
			}
		},
	}
}

// followerOf follows a kind for all graphs that have it, nil if none has.
func followerOf(kind graph.Kind, graphs []Graph) *follower {
	var states []*relation.State
	var watches []*relation.Watch
	for _, g := range graphs {
		if r := g.Table.Of(kind); r != nil {
			states, watches = append(states, g.State), append(watches, r)
		}
	}
	if len(watches) == 0 {
		return nil
	}
	return &follower{
		kind: relation.Schema.Names[kind], resource: watches[0].Resource, example: watches[0].New(), shape: shapeOf(watches[0]),
		set: func(object runtime.Object) {
			for i, state := range states {
				state.Set(watches[i], object)
			}
		},
		remove: func(namespace, name string) {
			for i, state := range states {
				state.Delete(watches[i], namespace, name)
			}
		},
		replace: func(objects []runtime.Object) {
			for i, state := range states {
				state.Replace(watches[i], objects)
			}
		},
	}
}

func (w *Watches) add(f *follower) {
	f.lag = func(took time.Duration) {
		if w.lag != nil {
			w.lag(f.kind, took)
		}
	}
	f.first = w.tidy
	w.each = append(w.each, f)
}

// tidy gives back, once, what the first lists needed and nothing will need again: the objects are gone, their edges are left.
func (w *Watches) tidy() {
	if w.Synced() && !w.tidied.Swap(true) {
		w.log.Info("The graph is synced")
		go debug.FreeOSMemory()
	}
}

// Synced says whether all objects that there were at the start are in the graph (B-3).
func (w *Watches) Synced() bool {
	for _, f := range w.each {
		if !f.synced.Load() {
			return false
		}
	}
	return true
}

// Waiting names the kinds that are not synced yet.
func (w *Watches) Waiting() []string {
	var kinds []string
	for _, f := range w.each {
		if !f.synced.Load() {
			kinds = append(kinds, f.kind)
		}
	}
	return kinds
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica watches (AE-24).
func (w *Watches) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	for _, f := range w.each {
		reflector := cache.NewReflectorWithOptions(w.listWatch(f), f.example, f, cache.ReflectorOptions{Name: "graph/" + f.kind, TypeDescription: f.kind})
		reflector.WatchListPageSize = pageSize
		go reflector.RunWithContext(ctx)
	}
	w.expire(ctx)
	return nil
}

// expireAtLeast bounds the time between two looks at certificates; clocks may be set.
const expireAtLeast = time.Minute

// expire computes again what depends on certificates when they expire (B-11).
func (w *Watches) expire(ctx context.Context) {
	for {
		wait := expireAtLeast
		for _, g := range w.graphs {
			if next := g.State.Expire(); !next.IsZero() {
				wait = min(wait, max(next.Sub(w.clock.Now())+time.Millisecond, time.Second))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.clock.After(wait):
		}
	}
}

// pageSize bounds what is held of a list that is not streamed: pages of real Shoots have some megabytes.
const pageSize = 500

func (w *Watches) listWatch(f *follower) *cache.ListWatch {
	client := w.client.clients[f.resource.GroupVersion()]
	request := func(options *metav1.ListOptions) *rest.Request {
		r := client.Get().Resource(f.resource.Resource).VersionedParams(options, w.client.codec)
		if options.TimeoutSeconds != nil {
			r = r.Timeout(time.Duration(*options.TimeoutSeconds) * time.Second)
		}
		return r
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if f.shape != nil {
				return f.shape.list(ctx, request(&options))
			}
			return request(&options).Do(ctx).Get()
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			if f.shape != nil {
				return f.shape.watch(ctx, request(&options), f.stamp, w.log.WithValues("kind", f.kind))
			}
			inner, err := request(&options).Watch(ctx)
			if err != nil {
				return nil, err
			}
			return watch.Filter(inner, func(event watch.Event) (watch.Event, bool) {
				f.stamp()
				return event, true
			}), nil
		},
	}
}

// stamp notes when an event arrives.
func (f *follower) stamp() {
	now := time.Now()
	f.arrived.Store(&now)
}

func (f *follower) measure() {
	if arrived := f.arrived.Load(); arrived != nil {
		f.lag(time.Since(*arrived))
	}
}

// Add implements cache.ReflectorStore.
func (f *follower) Add(object any) error { return f.Update(object) }

// Update implements cache.ReflectorStore.
func (f *follower) Update(object any) error {
	f.set(object.(runtime.Object))
	f.measure()
	return nil
}

// Delete implements cache.ReflectorStore.
func (f *follower) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	f.remove(accessor.GetNamespace(), accessor.GetName())
	f.measure()
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *follower) Replace(objects []any, _ string) error {
	typed := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		typed = append(typed, object.(runtime.Object))
	}
	f.replace(typed)
	if !f.synced.Swap(true) {
		f.first()
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *follower) Resync() error { return nil }
