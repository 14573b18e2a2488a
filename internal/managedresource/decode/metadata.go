package decode

import (
	"fmt"
	"maps"
	"slices"
)

// checkMetadata refuses metadata with values that must be strings and are not: they would silently be ignored, and
// with them control annotations such as ignore or mode (MRB-14). It also checks the metadata of Pod templates,
// because labels are injected there.
func checkMetadata(object map[string]any) error {
	if err := checkMeta(object["metadata"], "metadata"); err != nil {
		return err
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if v, found := object[field]; found && v != nil {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("%s: must be a string, is %s", field, typeName(v))
			}
		}
	}
	spec, _ := object["spec"].(map[string]any)
	if template, ok := spec["template"].(map[string]any); ok {
		return checkLabels(template["metadata"], "spec.template.metadata")
	}
	return nil
}

func checkMeta(value any, path string) error {
	if value == nil {
		return nil
	}
	meta, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: must be a mapping, is %s", path, typeName(value))
	}
	for _, field := range []string{"name", "namespace", "generateName"} {
		if v, found := meta[field]; found && v != nil {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("%s.%s: must be a string, is %s", path, field, typeName(v))
			}
		}
	}
	return checkLabels(value, path)
}

func checkLabels(value any, path string) error {
	meta, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	for _, field := range []string{"labels", "annotations"} {
		switch entries := meta[field].(type) {
		case nil:
		case map[string]any:
			keys := slices.Sorted(maps.Keys(entries))
			for i, key := range keys {
				if _, ok := entries[key].(string); !ok {
					// The key is content of a Secret, but its place in the sorted keys is not.
					return fmt.Errorf("%s.%s: entry %d of %d, in the order of keys: must be a string, is %s (quote it)", path, field,
						i+1, len(keys), typeName(entries[key]))
				}
			}
		default:
			return fmt.Errorf("%s.%s: must be a mapping, is %s", path, field, typeName(entries))
		}
	}
	return nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}
