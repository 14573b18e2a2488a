package kubectl

import "testing"

// TestFieldsOfWhy: CLI-30: --fields takes fields as why prints them, and pointers.
func TestFieldsOfWhy(t *testing.T) {
	live := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
		"containers":   []any{map[string]any{"name": "web", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "1", "nvidia": "2"}}}},
	}}}}
	for fields, want := range map[string]string{
		"/spec/replicas":  "/spec/replicas",
		"spec.replicas":   "/spec/replicas",
		"data.app.yaml":   "/data/app.yaml",
		"spec.ports[0].a": "/spec/ports/0/a",
		"metadata.labels.example.com/mine, spec.template.metadata.annotations.a.b": "/metadata/labels/example.com~1mine,/spec/template/metadata/annotations/a.b",
		"spec.template.spec.containers[web].resources":                             "/spec/template/spec/containers/[name=web]/resources",
		"spec.template.spec.nodeSelector.kubernetes.io/os":                         "/spec/template/spec/nodeSelector/kubernetes.io~1os",
		"spec.template.spec.containers[web].resources.limits.nvidia.com/gpu":       "/spec/template/spec/containers/[name=web]/resources/limits/nvidia.com~1gpu",
		"spec.strategy.rollingUpdate":                                              "/spec/strategy/rollingUpdate",
		"spec.template.spec.nodeSelector.example.com/none":                         "",
		"spec.template.spec.containers.":                                           "",
	} {
		if got, err := pointersOf(fields, live); got != want || (err == nil) != (want != "") {
			t.Errorf("CLI-30/%s: got %s, %v, want %s", fields, got, err, want)
		}
	}
}
