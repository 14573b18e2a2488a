package reference

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/executable/manifests"
	"github.com/espalier-project/espalier/internal/feature"
)

type settings struct {
	Webhooks struct {
		Names struct {
			Enabled bool `json:"enabled"`
		} `json:"names"`
	} `json:"webhooks"`
}

// example is an executable with two features.
func example() manifests.Executable[settings, struct{}] {
	return manifests.Executable[settings, struct{}]{
		Name: "x", Account: "garden/x", Clusters: []feature.Cluster{feature.Source, feature.Target},
		Rows: []feature.Row[settings, struct{}]{
			{Name: "tokens", Reads: func(*settings) []feature.Read {
				return []feature.Read{
					{Cluster: feature.Source, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Resource: "secrets", Form: feature.Metadata},
					{Cluster: feature.Target, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Resource: "nodes", ClusterScoped: true, Form: feature.Live},
				}
			}},
			{Name: "names", Switch: "webhooks.names.enabled"},
		},
		Namespaces: func(*settings) map[feature.Cluster][]string {
			return map[feature.Cluster][]string{feature.Source: {"a"}}
		},
	}
}
