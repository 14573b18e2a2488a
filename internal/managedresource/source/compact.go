package source

import (
	"maps"
	"slices"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Compact has ManagedResources in the cache share what their inventory repeats. Objects of one ManagedResource mostly
// have the same kind, namespace and labels, and a decoder makes new strings and a new map of some 400 bytes for each of
// them: most of what a cached ManagedResource takes.
var Compact = feature.Stripping(compact)

// compact changes no value. Maps are shared between entries: what a cache has is read only.
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
	// A decoder doubles what a list has room for.
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

// mostShared bounds with how many maps each is compared: an inventory of thousands of objects has few that repeat, or
// none.
const mostShared = 8
