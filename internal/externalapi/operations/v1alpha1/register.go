package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "operations.gardener.cloud", Version: "v1alpha1"}

// Resource returns a resource of the group.
func Resource(resource string) schema.GroupVersionResource {
	return GroupVersion.WithResource(resource)
}
