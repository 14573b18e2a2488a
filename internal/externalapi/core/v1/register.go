package v1

import "k8s.io/apimachinery/pkg/runtime/schema"

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "core.gardener.cloud", Version: "v1"}

// Resource returns a resource of the group.
func Resource(resource string) schema.GroupVersionResource {
	return GroupVersion.WithResource(resource)
}
