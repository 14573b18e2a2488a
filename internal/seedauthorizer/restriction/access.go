package restriction

import (
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/espalier-project/espalier/internal/externalapi/core/v1beta1"
	seedmanagementv1alpha1 "github.com/espalier-project/espalier/internal/externalapi/seedmanagement/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
	access "github.com/espalier-project/espalier/internal/seedauthorizer/garden"
)

// SeedReads returns the reads of SeedRestriction: whether an object whose creation is refused exists already (RES-2),
// and the lookups of its rules.
func SeedReads() []feature.Read {
	resources := map[schema.GroupResource]bool{}
	for resource, operations := range rules {
		if operations[admissionv1.Create] != nil {
			resources[resource] = true
		}
	}
	for _, resource := range []schema.GroupVersionResource{
		gardencorev1beta1.Resource("backupbuckets"), gardencorev1beta1.Resource("backupentries"), gardencorev1beta1.Resource("seeds"), gardencorev1beta1.Resource("shoots"),
		seedmanagementv1alpha1.Resource("gardenlets"), seedmanagementv1alpha1.Resource("managedseeds"), corev1.SchemeGroupVersion.WithResource("namespaces"),
	} {
		resources[resource.GroupResource()] = true
	}
	return lookups(resources)
}

// ShootReads returns the lookups of ShootRestriction's rules.
func ShootReads() []feature.Read {
	return lookups(map[schema.GroupResource]bool{
		gardencorev1beta1.Resource("backupbuckets").GroupResource(): true, seedmanagementv1alpha1.Resource("managedseeds").GroupResource(): true,
		gardencorev1beta1.Resource("seeds").GroupResource(): true, gardencorev1beta1.Resource("shoots").GroupResource(): true,
	})
}

func lookups(resources map[schema.GroupResource]bool) []feature.Read {
	var all []feature.Read
	for resource := range resources {
		all = append(all, access.Lookup(resource))
	}
	return all
}
