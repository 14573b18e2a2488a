package plan

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

func labelsToInject(options Options) map[string]string {
	labels := maps.Clone(options.Spec.InjectLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[resourcesv1alpha1.LabelManagedBy] = options.ManagedByLabelValue
	return labels
}

// injectLabels adds labels to the object, its Pod template and its volume claim templates (MRL-2). It skips values
// that are not mappings (MRB-13).
func injectLabels(object map[string]any, labels map[string]string) {
	injectInto(object, labels)
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return
	}
	if template, ok := spec["template"].(map[string]any); ok {
		injectInto(template, labels)
	}
	if templates, ok := spec["volumeClaimTemplates"].([]any); ok {
		for _, template := range templates {
			if template, ok := template.(map[string]any); ok {
				injectInto(template, labels)
			}
		}
	}
}

func injectInto(object map[string]any, labels map[string]string) {
	meta := ChildMap(object, "metadata")
	if meta == nil {
		return
	}
	if target := ChildMap(meta, "labels"); target != nil {
		for key, value := range labels {
			target[key] = value
		}
	}
}

// ChildMap returns the mapping at key, and creates it if it is absent; nil if the value is not a mapping.
func ChildMap(object map[string]any, key string) map[string]any {
	if value, found := object[key]; found && value != nil {
		child, _ := value.(map[string]any)
		return child
	}
	child := map[string]any{}
	object[key] = child
	return child
}

// foldStringData merges a Secret's stringData into its data, like the API server, so that desired and live objects
// can be compared (MRB-8).
func foldStringData(object *unstructured.Unstructured) {
	if object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return
	}
	entries, ok := object.Object["stringData"].(map[string]any)
	if !ok {
		return
	}
	for _, value := range entries {
		if _, ok := value.(string); !ok && value != nil {
			return // The API server rejects it with a better error.
		}
	}
	data := ChildMap(object.Object, "data")
	if data == nil {
		return
	}
	for key, value := range entries {
		text, _ := value.(string) // Null means "".
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(object.Object, "stringData")
}
