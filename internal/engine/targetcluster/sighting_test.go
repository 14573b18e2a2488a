package targetcluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MRB-8: custom resources are known by their groups being none of Kubernetes' own, whatever these end with.
func TestIsCustom(t *testing.T) {
	for group, want := range map[string]bool{
		"example.org": true, "core.gardener.cloud": true, "monitoring.coreos.com": true,
		"gateway.networking.k8s.io": true, "autoscaling.k8s.io": true, "snapshot.storage.k8s.io": true, "policy.networking.k8s.io": true, "x-k8s.io": true,
		"": false, "apps": false, "batch": false, "policy": false, "extensions": false, "autoscaling": false, "networking.k8s.io": false, "storage.k8s.io": false, "rbac.authorization.k8s.io": false,
		"apiextensions.k8s.io": false, "apiregistration.k8s.io": false, "flowcontrol.apiserver.k8s.io": false, "internal.apiserver.k8s.io": false, "resource.k8s.io": false, "storagemigration.k8s.io": false,
	} {
		if got := isCustom(group); got != want {
			t.Errorf("%q is custom: %t", group, got)
		}
	}
}

// MRM-15: version 1 has parts of the status in annotations, new ones every quarter of a minute. Merging keeps them, so that they put
// nothing in doubt; what else is annotated does.
func TestStatusOfAutoscalersIsNoDrift(t *testing.T) {
	digest := func(annotations map[string]any) uint64 {
		meta := map[string]any{"name": "a", "namespace": "n", "uid": "u"}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
			"metadata": meta, "spec": map[string]any{"maxReplicas": int64(3)}}}
		sighting := (View{}).Sighting(o)
		if len(o.GetAnnotations()) != len(annotations) {
			t.Error("the object was changed")
		}
		return sighting.Digest
	}
	none := digest(nil)
	for _, status := range []string{"autoscaling.alpha.kubernetes.io/current-metrics", "autoscaling.alpha.kubernetes.io/conditions"} {
		if digest(map[string]any{status: "1"}) != none || digest(map[string]any{status: "2"}) != none {
			t.Errorf("%s counts as drift", status)
		}
	}
	for _, other := range []string{"autoscaling.alpha.kubernetes.io/metrics", "a"} {
		if digest(map[string]any{other: "1"}) == none {
			t.Errorf("%s does not count as drift", other)
		}
	}
}
