package target

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/test/expect"
)

// MRM-15: version 1 has parts of the status in annotations, new ones every quarter of a minute. Merging keeps them, so that they put
// nothing out of sync; what else is annotated does.
func TestStatusOfAutoscalersIsNoDrift(t *testing.T) {
	digest := func(annotations map[string]any) uint64 {
		meta := map[string]any{"name": "a", "namespace": "n", "uid": "u"}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
			"metadata": meta, "spec": map[string]any{"maxReplicas": int64(3)}}}
		observation := (View{}).Observation(o)
		expect.Equal(t, len(o.GetAnnotations()), len(annotations), "the object was changed")
		return observation.Digest
	}
	none := digest(nil)
	for _, status := range []string{"autoscaling.alpha.kubernetes.io/current-metrics", "autoscaling.alpha.kubernetes.io/conditions"} {
		expect.True(t, digest(map[string]any{status: "1"}) == none && digest(map[string]any{status: "2"}) == none,
			"%s counts as drift", status)
	}
	for _, other := range []string{"autoscaling.alpha.kubernetes.io/metrics", "a"} {
		expect.True(t, digest(map[string]any{other: "1"}) != none, "%s does not count as drift", other)
	}
}
