package merge

import (
	"maps"
	"strings"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// mergeStrings implements the three-way merge of labels and annotations (MRL-5, MRL-6).
func mergeStrings(live, desired, old map[string]string, force bool) map[string]string {
	if force {
		return maps.Clone(desired)
	}
	result := maps.Clone(live)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range old {
		if _, wanted := desired[key]; !wanted && result[key] == value {
			delete(result, key)
		}
	}
	maps.Copy(result, desired)
	return result
}

func withoutReferences(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return strings.HasPrefix(key, resourcesv1alpha1.AnnotationReferencePrefix)
	})
	return kept
}
