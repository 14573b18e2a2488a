package garden

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Watches keep graphs up to date with the garden.
type Watches struct {
	graphs []Graph
	clock  clock.Clock
	log    logr.Logger
	each   []*reflector.Follower
	tidied atomic.Bool
}

// Graph is a state, with the table of its edges.
type Graph struct {
	State *relation.State
	Table relation.Table
}

// Receiver receives each object that the graphs follow, except Namespaces.
type Receiver interface {
	Set(object runtime.Object)
	Remove(kind graph.Kind, namespace, name string)
	Retain(kind graph.Kind, there func(namespace, name string) bool)
}

// NewWatches prepares the watches of all kinds that the graphs need, each kind once, and passes them to also, too. metrics may be nil; they record how long an
// event took from its arrival until the graphs had it, which objects cannot be decoded, and how long a watch has been silent.
func NewWatches(client *Client, graphs []Graph, also Receiver, c clock.Clock, metrics *Metrics, log logr.Logger) *Watches {
	w := &Watches{graphs: graphs, clock: c, log: log}
	add := func(kind reflector.Kind) {
		kind.First = w.tidy
		if metrics != nil {
			kind.Lag = func(took time.Duration) { metrics.Lag(kind.Name, took) }
			kind.Undecodable = func(_, _ string, _ error) { metrics.Undecodable(kind.Name) }
		}
		version := kind.Resource.GroupVersion()
		kind.Whole = isWhole(version)
		f := reflector.New(kind, client.clients[version], c, log)
		w.each = append(w.each, f)
		if metrics != nil {
			metrics.Follow(kind.Name, f.Silence)
		}
	}
	add(namespaces(graphs))
	for kind := range relation.Schema.Names {
		if k, wanted := kindOf(graph.Kind(kind), graphs); wanted {
			add(telling(k, graph.Kind(kind), also))
		}
	}
	reflector.Together(w.each, c)
	return w
}

func namespaces(graphs []Graph) reflector.Kind {
	return reflector.Kind{
		Name: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), New: func() runtime.Object { return &corev1.Namespace{} },
		Set: func(object runtime.Object) {
			for _, g := range graphs {
				g.State.SetNamespace(object.(*corev1.Namespace))
			}
		},
		Remove: func(_, name string) {
			for _, g := range graphs {
				g.State.DeleteNamespace(name)
			}
		},
		Retain: func(names reflector.Names) {
			for _, g := range graphs {
				g.State.RetainNamespaces(func(name string) bool { return names.Has("", name) })
			}
		},
	}
}

// kindOf returns the kind to follow for all graphs that have it.
func kindOf(kind graph.Kind, graphs []Graph) (k reflector.Kind, wanted bool) {
	var states []*relation.State
	var watches []*relation.Watch
	for _, g := range graphs {
		if r := g.Table.Of(kind); r != nil {
			states, watches = append(states, g.State), append(watches, r)
		}
	}
	if len(watches) == 0 {
		return k, false
	}
	return reflector.Kind{
		Name: relation.Schema.Names[kind], Resource: watches[0].Resource, New: watches[0].New, Message: watches[0].Message,
		Set: func(object runtime.Object) {
			for i, state := range states {
				state.Set(watches[i], object)
			}
		},
		Remove: func(namespace, name string) {
			for i, state := range states {
				state.Delete(watches[i], namespace, name)
			}
		},
		Retain: func(names reflector.Names) {
			for i, state := range states {
				state.Retain(watches[i], names.Has)
			}
		},
	}, true
}

// telling makes a kind pass its objects to a receiver, too.
func telling(k reflector.Kind, kind graph.Kind, also Receiver) reflector.Kind {
	set, remove, retain := k.Set, k.Remove, k.Retain
	k.Set = func(object runtime.Object) { set(object); also.Set(object) }
	k.Remove = func(namespace, name string) { remove(namespace, name); also.Remove(kind, namespace, name) }
	k.Retain = func(names reflector.Names) {
		if !names.All() {
			retain(names)
			also.Retain(kind, names.Has)
		}
	}
	return k
}

// tidy frees, once, the memory that the first lists needed: only the edges of their objects are stored.
func (w *Watches) tidy() {
	if w.Synced() && !w.tidied.Swap(true) {
		w.log.Info("The graph is synced")
		go debug.FreeOSMemory()
	}
}

// Synced reports whether all objects that existed at the start are in the graph (B-3).
func (w *Watches) Synced() bool { return len(w.Awaited()) == 0 }

// Awaited returns the names of the kinds whose objects are not all in the graph yet.
func (w *Watches) Awaited() []string { return reflector.Awaited(w.each) }

// Contact returns an error if nothing was received of a kind for longer than the given time: no event, bookmark or
// list. The error names these kinds; zero means no limit.
func (w *Watches) Contact(longest time.Duration) error {
	var silent []string
	for _, f := range w.each {
		if silence := f.Silence(); longest > 0 && silence > longest {
			silent = append(silent, fmt.Sprintf("%s for %s", f.Name, silence.Truncate(time.Second)))
		}
	}
	if len(silent) == 0 {
		return nil
	}
	slices.Sort(silent)
	return fmt.Errorf("nothing was heard of %s; at most %s is allowed", strings.Join(silent, ", "), longest)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica watches (AE-24).
func (w *Watches) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	for _, f := range w.each {
		f.Start(ctx)
	}
	w.expire(ctx)
	return nil
}

// expireAtLeast bounds the interval of checking certificates; clocks may be set.
const expireAtLeast = time.Minute

// expire recomputes the edges that depend on certificates when these expire (B-11).
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
