package replay

import (
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/endpoint/auditlog"
	"github.com/espalier-project/espalier/internal/externalapi/jsonprune"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// world is the graphs of one table of edges.
type world struct {
	seeds, shoots         *relation.State
	seedTable, selfHosted relation.Table
	withoutEdges          []string
}

// newWorld returns the graphs of an empty garden, without some edges of the table.
func newWorld(without []string, clock *eventClock) *world {
	return &world{
		seeds: relation.NewState(graph.New(relation.Schema), clock, nil), shoots: relation.NewState(graph.New(relation.SelfHostedSchema), clock, nil),
		seedTable: lessEdges(relation.Watches, without), selfHosted: lessEdges(relation.SelfHosted, without), withoutEdges: without,
	}
}

func lessEdges(table relation.Table, without []string) relation.Table {
	if len(without) == 0 {
		return table
	}
	less := slices.Clone(table)
	for i, w := range less {
		less[i] = w.Without(without...)
	}
	return less
}

func (w *world) set(kind graph.Kind, object runtime.Object) {
	if namespace, is := object.(*corev1.Namespace); is {
		w.seeds.SetNamespace(namespace)
		w.shoots.SetNamespace(namespace)
		return
	}
	if watch := w.seedTable.Of(kind); watch != nil {
		w.seeds.Set(watch, object)
	}
	if watch := w.selfHosted.Of(kind); watch != nil {
		w.shoots.Set(watch, object)
	}
}

func (w *world) delete(kind graph.Kind, namespace, name string) {
	if kind == relation.Namespace {
		w.seeds.DeleteNamespace(name)
		w.shoots.DeleteNamespace(name)
		return
	}
	if watch := w.seedTable.Of(kind); watch != nil {
		w.seeds.Delete(watch, namespace, name)
	}
	if watch := w.selfHosted.Of(kind); watch != nil {
		w.shoots.Delete(watch, namespace, name)
	}
}

// eventClock is the time of the garden: that of the dump, and then that of the last write of the log.
type eventClock struct{ now time.Time }

// Now implements clock.PassiveClock.
func (c *eventClock) Now() time.Time { return c.now }

// Since implements clock.PassiveClock.
func (c *eventClock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// followed is a kind whose writes change the graphs.
type followed struct {
	kind  graph.Kind
	fresh func() runtime.Object
	shape *jsonprune.Shape
}

// kinds are all of them.
var kinds = func() map[schema.GroupResource]followed {
	all := map[schema.GroupResource]followed{}
	add := func(kind graph.Kind, resource schema.GroupResource, fresh func() runtime.Object) {
		all[resource] = followed{kind, fresh, jsonprune.ShapeOf(reflect.TypeOf(fresh()).Elem())}
	}
	add(relation.Namespace, schema.GroupResource{Resource: "namespaces"}, func() runtime.Object { return &corev1.Namespace{} })
	for _, w := range slices.Concat(relation.Watches, relation.SelfHosted) {
		add(w.Kind, w.Resource.GroupResource(), w.New)
	}
	return all
}()

// isWrite reports whether an event changed an object of a kind that is followed.
func isWrite(e *auditlog.Event) bool {
	if _, is := kinds[schema.GroupResource{Group: e.APIGroup, Resource: e.Resource}]; !is {
		return false
	}
	return e.Over() && e.Wrote("status", "finalizers", "finalize")
}

// written is an object after a write; object is nil if it is gone.
type written struct {
	kind            graph.Kind
	namespace, name string
	object          runtime.Object
}

// writtenBy returns the objects that a write changed; known is false if the log does not contain them.
func writtenBy(e *auditlog.Event) (all []written, known bool) {
	of := kinds[schema.GroupResource{Group: e.APIGroup, Resource: e.Resource}]
	changes, known := e.Changes()
	for _, c := range changes {
		w := written{kind: of.kind, namespace: c.Namespace, name: c.Name}
		if !c.Gone {
			if c.Kind != "" && c.Kind != relation.Schema.Names[of.kind] {
				return nil, false
			}
			var err error
			if w.object, err = of.read(&c); err != nil {
				return nil, false
			}
		}
		all = append(all, w)
	}
	return all, known
}

// read decodes the fields of an object that matter.
func (f followed) read(c *auditlog.Change) (runtime.Object, error) {
	object := f.fresh()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(f.shape.Cut(nil, c.Body), object); err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(object)
	if err == nil {
		accessor.SetNamespace(c.Namespace)
		accessor.SetName(c.Name)
	}
	return object, err
}
