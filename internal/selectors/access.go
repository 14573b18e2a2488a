package selectors

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// Write returns the right that asking an API server which does not always send selectors needs (SEL-12); everybody may
// read its version.
func Write(cluster feature.Cluster) feature.Write {
	return feature.Write{Cluster: cluster, Group: authorizationv1.GroupName, Resource: "subjectaccessreviews", ClusterScoped: true, Verbs: []string{"create"}}
}
