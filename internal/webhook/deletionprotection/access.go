package deletionprotection

import (
	"slices"

	"github.com/espalier-project/espalier/internal/feature"
)

// clusterScoped are the protected resources without namespaces.
var clusterScoped = []string{"customresourcedefinitions", "backupbuckets", "backupentries"}

// Reads returns the live lists of the source: the kinds whose collections a request may delete.
func Reads() []feature.Read {
	var all []feature.Read
	for version, resources := range protected {
		for _, resource := range resources {
			all = append(all, feature.Read{
				Cluster: feature.Source, Kind: version.WithKind(resource), Resource: resource, ClusterScoped: slices.Contains(clusterScoped, resource), Form: feature.List, Optional: true,
			})
		}
	}
	return all
}
