package healthcheck

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Fields of any type, anywhere, end nothing.
func TestOddFields(t *testing.T) {
	odd := []any{nil, "text", int64(-5), 2.5, true, []any{}, []any{nil, "x", []any{}}, map[string]any{}, map[string]any{"type": map[string]any{}, "": nil}, []any{map[string]any{"type": []any{}, "status": int64(1)}}}
	base := map[string]any{
		"metadata": map[string]any{"name": "n", "generation": int64(2), "annotations": map[string]any{"a": "b"}},
		"spec":     map[string]any{"type": "LoadBalancer", "replicas": int64(3), "updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": "10%"}}},
		"status": map[string]any{"observedGeneration": int64(2), "state": "Ready", "phase": "Running", "loadBalancer": map[string]any{"ingress": []any{map[string]any{}}}, "desiredNumberScheduled": int64(1),
			"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "r", "message": "m", "observedGeneration": int64(2)}, map[string]any{"type": "Progressing", "status": "True"}}},
	}
	var visit func(t *testing.T, node any, set func(any), try func())
	visit = func(t *testing.T, node any, set func(any), try func()) {
		for _, value := range odd {
			set(runtime.DeepCopyJSONValue(value))
			try()
		}
		set(node)
		switch node := node.(type) {
		case map[string]any:
			for key, child := range node {
				visit(t, child, func(v any) { node[key] = v }, try)
			}
		case []any:
			for i, child := range node {
				visit(t, child, func(v any) { node[i] = v }, try)
			}
		}
	}
	for gvk := range checks {
		object := runtime.DeepCopyJSON(base)
		visit(t, object, func(v any) {}, func() {
			u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
			u.SetGroupVersionKind(gvk)
			Options{CustomResources: true}.Assess(u)
			assessByConvention(u)
		})
	}
}
