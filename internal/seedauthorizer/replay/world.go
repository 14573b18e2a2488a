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
	*relation.Garden
	withoutEdges []string
}

// eventClock is the time of the garden: first that of the dump, and then that of the last write of the log.
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

// kinds are all kinds whose writes change the graphs.
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

// written is an object after a write; object is nil if it was deleted.
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

// read decodes the fields of an object that are needed.
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
