package deletionprotection

import "github.com/espalier-project/espalier/internal/feature"

// Reads are what it lists live, of the source: the kinds of which a request may delete a collection.
func Reads() []feature.Read {
	var all []feature.Read
	for version, resources := range protected {
		for _, resource := range resources {
			all = append(all, feature.Read{Cluster: feature.Source, Kind: version.WithKind(resource), Resource: resource, ClusterScoped: version.Group == crds.Group, Form: feature.List, Optional: true})
		}
	}
	return all
}
