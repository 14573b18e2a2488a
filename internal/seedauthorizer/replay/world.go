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
	"github.com/espalier-project/espalier/internal/externalapi/slice"
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
	shape *slice.Shape
}

// kinds are all of them.
var kinds = func() map[schema.GroupResource]followed {
	all := map[schema.GroupResource]followed{}
	add := func(kind graph.Kind, resource schema.GroupResource, fresh func() runtime.Object) {
		all[resource] = followed{kind, fresh, slice.ShapeOf(reflect.TypeOf(fresh()).Elem())}
	}
	add(relation.Namespace, schema.GroupResource{Resource: "namespaces"}, func() runtime.Object { return &corev1.Namespace{} })
	for _, w := range slices.Concat(relation.Watches, relation.SelfHosted) {
		add(w.Kind, w.Resource.GroupResource(), w.New)
	}
	return all
}()

// isWrite says whether an event changed an object of a kind that is followed.
func isWrite(e *auditlog.Event) bool {
	if !e.Wrote("status", "finalizers") {
		return false
	}
	_, is := kinds[schema.GroupResource{Group: e.APIGroup, Resource: e.Resource}]
	return is
}

// written is what a write made of an object: the object, or that it is gone, or nothing if the log does not tell.
type written struct {
	kind            graph.Kind
	namespace, name string
	object          runtime.Object
	gone            bool
}

// writtenBy reads the body of a write. The response has the object as it is afterwards; a request has it as it was asked for, which is as good for a
// creation and an update.
func writtenBy(e *auditlog.Event) (written, bool) {
	of := kinds[schema.GroupResource{Group: e.APIGroup, Resource: e.Resource}]
	w := written{kind: of.kind, namespace: e.Namespace, name: e.Name}
	body := e.ResponseObject
	if body == "" && (e.Verb == "create" || e.Verb == "update") {
		body = e.RequestObject
	}
	if body == "" {
		return w, false
	}
	var said struct {
		Kind     string `json:"kind"`
		Metadata struct {
			DeletionTimestamp *string  `json:"deletionTimestamp"`
			Finalizers        []string `json:"finalizers"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), &said); err != nil {
		return w, false
	}
	if e.Verb == "delete" && said.Kind == "Status" || said.Metadata.DeletionTimestamp != nil && len(said.Metadata.Finalizers) == 0 {
		w.gone = true
		return w, w.name != ""
	}
	if said.Kind != "" && said.Kind != relation.Schema.Names[of.kind] {
		return w, false
	}
	w.object = of.fresh()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(of.shape.Cut(nil, []byte(body)), w.object); err != nil {
		return w, false
	}
	accessor, err := meta.Accessor(w.object)
	if err != nil {
		return w, false
	}
	if accessor.GetName() == "" {
		accessor.SetName(e.Name)
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(e.Namespace)
	}
	w.namespace, w.name = accessor.GetNamespace(), accessor.GetName()
	return w, w.name != ""
}
