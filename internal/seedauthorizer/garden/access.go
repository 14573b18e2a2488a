package garden

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Reads returns the reads of the graphs' watches, each kind once.
func Reads(tables ...relation.Table) []feature.Read {
	graphs := make([]Graph, len(tables))
	for i, table := range tables {
		graphs[i].Table = table
	}
	all := []feature.Read{stream(namespaces(nil).Resource)}
	for kind := range relation.Schema.Names {
		if k, wanted := kindOf(graph.Kind(kind), graphs); wanted {
			all = append(all, stream(k.Resource))
		}
	}
	return all
}

func stream(r schema.GroupVersionResource) feature.Read {
	return feature.Read{Cluster: feature.Garden, Kind: r.GroupVersion().WithKind(""), Resource: r.Resource, Form: feature.Stream}
}

// Lookup returns the right to read single objects of a resource.
func Lookup(r schema.GroupResource) feature.Read {
	return feature.Read{Cluster: feature.Garden, Kind: schema.GroupVersionKind{Group: r.Group}, Resource: r.Resource, Form: feature.Live}
}
