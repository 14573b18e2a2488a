package referrers

import (
	"maps"
	"slices"
	"sync"

	"github.com/espalier-project/espalier/internal/graph"
)

// index finds values by the objects to which their owners refer. Its zero value is empty.
type index[T any] struct {
	mu sync.RWMutex
	// references has the references of each owner.
	references map[graph.Vertex][]graph.Vertex
	// values has the values by referenced object and by owner.
	values map[graph.Vertex]map[graph.Vertex]T
}

// set replaces the value and the references of an owner. An owner without references is dropped.
func (x *index[T]) set(owner graph.Vertex, value T, references []graph.Vertex) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, reference := range x.references[owner] {
		delete(x.values[reference], owner)
		if len(x.values[reference]) == 0 {
			delete(x.values, reference)
		}
	}
	delete(x.references, owner)
	if len(references) == 0 {
		return
	}
	if x.references == nil {
		x.references, x.values = map[graph.Vertex][]graph.Vertex{}, map[graph.Vertex]map[graph.Vertex]T{}
	}
	x.references[owner] = references
	for _, reference := range references {
		if x.values[reference] == nil {
			x.values[reference] = map[graph.Vertex]T{}
		}
		x.values[reference][owner] = value
	}
}

// retain drops the owners of a kind that do not exist.
func (x *index[T]) retain(kind graph.Kind, there func(namespace, name string) bool) {
	x.mu.RLock()
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(x.references)), func(owner graph.Vertex) bool {
		return owner.Kind != kind || there(owner.Namespace, owner.Name)
	})
	x.mu.RUnlock()
	for _, owner := range gone {
		var none T
		x.set(owner, none, nil)
	}
}

// of returns the values whose owners refer to an object, in no order.
func (x *index[T]) of(reference graph.Vertex) []T {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Collect(maps.Values(x.values[reference]))
}
