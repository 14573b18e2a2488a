package selectors

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// Write is what asking an API server needs that does not always send selectors (SEL-12); its version everybody may read.
func Write(cluster feature.Cluster) feature.Write {
	return feature.Write{Cluster: cluster, Group: authorizationv1.GroupName, Resource: "subjectaccessreviews", ClusterScoped: true, Verbs: []string{"create"}}
}
