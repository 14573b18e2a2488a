package relation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/graph"
)

// Garden has both graphs, made from the same objects: the one for seeds and the one for self-hosted shoots.
type Garden struct {
	Seeds, Shoots *State
	// SeedTable and ShootTable are the edges of the graphs.
	SeedTable, ShootTable Table
}

// NewGarden returns the graphs of an empty garden, without the edges of some rows.
func NewGarden(c clock.PassiveClock, without ...string) *Garden {
	return &Garden{
		Seeds: NewState(graph.New(Schema), c, nil), SeedTable: Watches.without(without),
		Shoots: NewState(graph.New(SelfHostedSchema), c, nil), ShootTable: SelfHosted.without(without),
	}
}

// Set records an object of a watched kind, or a Namespace, that was added or changed. Objects of other kinds change
// nothing.
func (g *Garden) Set(kind graph.Kind, object runtime.Object) {
	g.each(func(state *State, table Table) {
		if namespace, is := object.(*corev1.Namespace); is && kind == Namespace {
			state.SetNamespace(namespace)
		} else if watch := table.Of(kind); watch != nil {
			state.Set(watch, object)
		}
	})
}

// Delete records that an object was deleted.
func (g *Garden) Delete(kind graph.Kind, namespace, name string) {
	g.each(func(state *State, table Table) {
		if kind == Namespace {
			state.DeleteNamespace(name)
		} else if watch := table.Of(kind); watch != nil {
			state.Delete(watch, namespace, name)
		}
	})
}

func (g *Garden) each(do func(*State, Table)) {
	do(g.Shoots, g.ShootTable) // First: a Shoot that only the graph for seeds has is an ordinary one (SHI-3).
	do(g.Seeds, g.SeedTable)
}
