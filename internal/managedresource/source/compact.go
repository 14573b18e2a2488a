package source

import (
	"maps"
	"slices"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Compact makes ManagedResources in the cache share repeated parts of their inventory. Objects of one ManagedResource
// mostly have the same kind, namespace and labels, but the decoder creates new strings and a new map of some 400
// bytes for each of them: most of the memory of a cached ManagedResource.
var Compact = feature.Stripping(compact)

// compact changes no value. Entries may share maps, because cached objects are read only.
func compact(mr *resourcesv1alpha1.ManagedResource) {
	texts, shared := map[string]string{}, []map[string]string{}
	text := func(s *string) {
		if known, found := texts[*s]; found {
			*s = known
			return
		}
		texts[*s] = *s
	}
	share := func(m *map[string]string) {
		if *m == nil {
			return
		}
		if at := slices.IndexFunc(shared, func(known map[string]string) bool { return maps.Equal(known, *m) }); at >= 0 {
			*m = shared[at]
			return
		}
		if len(shared) < mostShared {
			shared = append(shared, *m)
		}
	}
	// The copy has no spare capacity: a decoder doubles the capacity of a list that grows.
	mr.Status.Resources = append([]resourcesv1alpha1.ObjectReference(nil), mr.Status.Resources...)
	for i := range mr.Status.Resources {
		entry := &mr.Status.Resources[i]
		for _, s := range []*string{&entry.APIVersion, &entry.Kind, &entry.Namespace} {
			text(s)
		}
		share(&entry.Labels)
		share(&entry.Annotations)
	}
}

// mostShared limits the maps that each map is compared with: even an inventory of thousands of objects has few
// different maps that repeat, or none.
const mostShared = 8
