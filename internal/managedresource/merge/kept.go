package merge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// KeptField returns the first of the given fields that Merge did not take from the manifest but kept from the live
// object, also as a part of a larger field; empty if there is none. The fields have the form of API server errors,
// such as "spec.template.spec.containers[0].resources.requests[cpu]".
func KeptField(desired, merged *unstructured.Unstructured, fields []string) string {
	kept := keptFields(desired.Object, merged.Object, "")
	i := slices.IndexFunc(fields, func(field string) bool {
		return slices.ContainsFunc(kept, func(path string) bool {
			rest, within := strings.CutPrefix(field, path)
			return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
		})
	})
	if i < 0 {
		return ""
	}
	return fields[i]
}

// keptFields returns the paths of the values that differ, except in metadata and status.
func keptFields(desired, merged any, path string) (paths []string) {
	switch merged := merged.(type) {
	case map[string]any:
		desired, ok := desired.(map[string]any)
		if !ok {
			return []string{path}
		}
		for key, value := range merged {
			if path == "" && (key == "metadata" || key == "status") {
				continue
			}
			paths = append(paths, keptFields(desired[key], value, strings.TrimPrefix(path+"."+key, "."))...)
		}
		return paths
	case []any:
		desired, ok := desired.([]any)
		if !ok || len(desired) != len(merged) {
			return []string{path}
		}
		for i, value := range merged {
			paths = append(paths, keptFields(desired[i], value, fmt.Sprintf("%s[%d]", path, i))...)
		}
		return paths
	}
	if reflect.DeepEqual(desired, merged) {
		return nil
	}
	return []string{path}
}
