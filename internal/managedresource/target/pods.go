package target

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

var (
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	replicaSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
)

// countedPods is the name in the scope of a watch that sees all Pods, or ReplicaSets, of a namespace, and only counts
// them: those of a Deployment that is created only once have no managed-by label. Managed objects have another scope
// that reports them.
const countedPods = "#"

// podScopes returns the scopes of the watches that count the Pods of a Deployment.
func (w *Watches) podScopes(deployment objects.Ref) [2]scope {
	var scopes [2]scope
	for i, gvk := range []schema.GroupVersionKind{podKind, replicaSetKind} {
		scopes[i] = scope{gvk: gvk, namespace: w.watchedIn(deployment.Namespace)}
		if podSourceOf(deployment) == unfiltered {
			scopes[i] = scope{gvk, deployment.Namespace, countedPods}
		}
	}
	return scopes
}

// AwaitPodsCovered reports whether the Pods of a Deployment are counted by watches, and waits as AwaitCovered does.
func (w *Watches) AwaitPodsCovered(ctx context.Context, deployment objects.Ref) bool {
	for _, s := range w.podScopes(deployment) {
		if !w.awaitScope(ctx, s) {
			return false
		}
	}
	return true
}

// PodsCovered reports whether the Pods of a Deployment are counted by watches.
func (w *Watches) PodsCovered(deployment objects.Ref) bool {
	for _, s := range w.podScopes(deployment) {
		if !w.scopeCovered(s) {
			return false
		}
	}
	return true
}

// counts reports whether a watch of the scope counts Pods or ReplicaSets, and as which source of them.
func (s scope) counts() (podSource, bool) {
	switch {
	case s.gvk != podKind && s.gvk != replicaSetKind:
		return 0, false
	case s.name == countedPods:
		return unfiltered, true
	}
	return labelled, s.name == ""
}

// forgetPods removes the Pods that a complete list of the scope no longer has, all of them if listed is nil.
func (s scope) forgetPods(pods *podCounts, listed map[types.UID]struct{}) {
	source, counts := s.counts()
	switch {
	case !counts:
	case s.gvk == podKind:
		pods.forgetPods(source, s.namespace, listed)
	default:
		pods.forgetReplicaSets(source, s.namespace, listed)
	}
}

// podObservation returns the observation of a Pod that is managed itself. It has no digest of the content, so that
// every new resource version is checked.
func (w *Watches) podObservation(pod *corev1.Pod) objects.Observation {
	observation := observationOf(podKind, pod)
	status := map[string]any{"phase": string(pod.Status.Phase)}
	object := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	object.SetGroupVersionKind(podKind)
	object.SetAnnotations(pod.Annotations)
	verdict := w.view.Health.Assess(object)
	observation.Verdict, observation.Version = &verdict, podKind.Version
	return observation
}
