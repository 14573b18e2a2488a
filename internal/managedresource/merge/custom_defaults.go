package merge

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// CustomDefaults are the API server's defaults for the fields of a custom resource, from the schema of its
// CustomResourceDefinition. The zero value has no defaults.
type CustomDefaults struct {
	schema map[string]any
}

// NewCustomDefaults returns the defaults of a version. They are known only for the storage version of a kind without
// conversion: otherwise a written object differs from the one that is read.
func NewCustomDefaults(definition *unstructured.Unstructured, version string) CustomDefaults {
	if strategy, found, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "strategy"); found &&
		strategy != "None" {
		return CustomDefaults{}
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, entry := range versions {
		v, _ := entry.(map[string]any)
		if v["name"] == version && v["storage"] == true {
			schema, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
			return CustomDefaults{schema}
		}
	}
	return CustomDefaults{}
}

// ownFields are the top-level fields without a default, or that a write of the object does not change.
var ownFields = []string{"apiVersion", "kind", "metadata", "status"}

// Fill sets the defaults of fields that are absent, as the API server does for each write. A null stays, although the
// API server may replace it: this causes an unnecessary write, but hides no difference.
func (d CustomDefaults) Fill(object *unstructured.Unstructured) {
	properties, _ := d.schema["properties"].(map[string]any)
	for name, property := range properties {
		if slices.Contains(ownFields, name) {
			continue
		}
		fillField(property, object.Object, name)
	}
}

func fillField(schema any, parent map[string]any, name string) {
	s, _ := schema.(map[string]any)
	if _, found := parent[name]; !found {
		value, has := s["default"]
		if !has {
			return
		}
		parent[name] = runtime.DeepCopyJSONValue(value)
	}
	fill(s, parent[name])
}

func fill(schema map[string]any, value any) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			fillField(property, value, name)
		}
		additional, _ := schema["additionalProperties"].(map[string]any)
		for name := range value {
			if _, known := properties[name]; !known && additional != nil {
				fillField(additional, value, name)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range value {
			fill(items, item)
		}
	}
}
