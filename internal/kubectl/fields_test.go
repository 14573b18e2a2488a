package kubectl

import "testing"

// TestFieldsOfWhy: CLI-30: --fields takes fields as why prints them, and pointers.
func TestFieldsOfWhy(t *testing.T) {
	for fields, want := range map[string]string{
		"/spec/replicas":  "/spec/replicas",
		"spec.replicas":   "/spec/replicas",
		"data.app.yaml":   "/data/app.yaml",
		"spec.ports[0].a": "/spec/ports/0/a",
		"metadata.labels.example.com/mine, spec.template.metadata.annotations.a.b": "/metadata/labels/example.com~1mine,/spec/template/metadata/annotations/a.b",
		"spec.template.spec.containers[web].resources":                             "/spec/template/spec/containers/[name=web]/resources",
	} {
		if got := pointersOf(fields); got != want {
			t.Errorf("CLI-30/%s: got %s, want %s", fields, got, want)
		}
	}
}
