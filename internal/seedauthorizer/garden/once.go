package garden

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Each reads all objects of the graphs once, kind after kind, Namespaces first and Seeds next, and hands over each
// object. The kinds are read at different times, so an object that changes meanwhile may refer to one that is
// missing. report, if it is set, is called before each kind.
func Each(ctx context.Context, client *Client, log logr.Logger, report func(kind string), each func(kind graph.Kind, object runtime.Object) error) error {
	list := func(kind reflector.Kind, of graph.Kind) error {
		version := kind.Resource.GroupVersion()
		kind.Whole = isWhole(version)
		if report != nil {
			report(kind.Name)
		}
		return reflector.List(ctx, client.clients[version], kind, log, func(object runtime.Object) error { return each(of, object) })
	}
	graphs := []Graph{{Table: relation.Watches}, {Table: relation.SelfHosted}}
	if err := list(namespaces(nil), relation.Namespace); err != nil {
		return err
	}
	order := []graph.Kind{relation.Seed}
	for kind := range relation.Schema.Names {
		if graph.Kind(kind) != relation.Seed {
			order = append(order, graph.Kind(kind))
		}
	}
	for _, kind := range order {
		if k, wanted := kindOf(kind, graphs); wanted {
			if err := list(k, kind); err != nil {
				return err
			}
		}
	}
	return nil
}
