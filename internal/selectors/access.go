package selectors

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/espalier-project/espalier/internal/feature"
)

// Write returns the right that is needed to determine whether an API server sends selectors (SEL-12). No right is
// needed to read its version.
func Write(cluster feature.Cluster) feature.Write {
	return feature.Write{Cluster: cluster, Group: authorizationv1.GroupName, Resource: "subjectaccessreviews", ClusterScoped: true, Verbs: []string{"create"}}
}
