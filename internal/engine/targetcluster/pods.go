package targetcluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

var (
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	replicaSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
)

// podSighting is what a Pod says if it is managed itself; its content is not compared in this form, so that every new
// resource version is looked at.
func (w *Watches) podSighting(pod *corev1.Pod) ledger.Sighting {
	sighting := sightingOf(podKind, pod)
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": string(pod.Status.Phase)}}}
	object.SetGroupVersionKind(podKind)
	object.SetAnnotations(pod.Annotations)
	verdict := w.view.Health.Assess(object)
	sighting.Verdict, sighting.Version = &verdict, podKind.Version
	return sighting
}
