package manifests

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Print writes objects as YAML documents, without the fields that only the API server writes.
func Print(out io.Writer, objects []client.Object) error {
	for i, object := range objects {
		fields, err := written(object)
		if err != nil {
			return err
		}
		document, err := yaml.Marshal(fields)
		if err != nil {
			return err
		}
		separator := "---\n"
		if i == 0 {
			separator = ""
		}
		if _, err := fmt.Fprintf(out, "%s%s", separator, document); err != nil {
			return err
		}
	}
	return nil
}

// written returns the printed form of an object.
func written(object client.Object) (map[string]any, error) {
	content, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return fields, nil
}
