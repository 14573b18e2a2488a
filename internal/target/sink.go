package target

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/health"
	"github.com/espalier-project/espalier/internal/ledger"
)

// sink takes what a watch delivers and reports it to the ledger; it stores nothing.
type sink struct {
	watches *Watches
	scope   scope
	active  *activeWatch
}

var _ cache.ReflectorStore = (*sink)(nil)

// Add implements cache.ReflectorStore.
func (s *sink) Add(object any) error { _, err := s.seen(object); return err }

// Update implements cache.ReflectorStore.
func (s *sink) Update(object any) error { _, err := s.seen(object); return err }

// Resync implements cache.ReflectorStore.
func (s *sink) Resync() error { return nil }

// Delete implements cache.ReflectorStore.
func (s *sink) Delete(object any) error {
	accessor, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected object %T", object)
	}
	switch s.scope.gvk {
	case podKind:
		s.watches.ledger.SetPod(accessor.GetUID(), "", false)
	case replicaSetKind:
		s.watches.ledger.SetReplicaSet(accessor.GetUID(), "")
	}
	s.watches.ledger.Gone(sightingOf(s.scope.gvk, accessor).Key, accessor.GetUID(), accessor.GetResourceVersion())
	return nil
}

// Replace implements cache.ReflectorStore: it gets the complete list at the start and after every gap.
func (s *sink) Replace(objects []any, resourceVersion string) error {
	listed := make(map[ledger.Key]struct{}, len(objects))
	uids := make(map[types.UID]struct{})
	for _, object := range objects {
		key, err := s.seen(object)
		if err != nil {
			return err
		}
		listed[key] = struct{}{}
		if s.scope.gvk == podKind || s.scope.gvk == replicaSetKind {
			uids[object.(metav1.Object).GetUID()] = struct{}{}
		}
	}
	s.forgetPods(uids)
	s.watches.ledger.Listed(func(ref ledger.Ref) bool { return s.watches.scopeOf(ref) == s.scope }, listed, resourceVersion)
	s.active.live.Store(true)
	return nil
}

func (s *sink) seen(object any) (ledger.Key, error) {
	var sighting ledger.Sighting
	switch object := object.(type) {
	case *unstructured.Unstructured:
		sighting = s.watches.view.Sighting(object)
	case *corev1.Pod:
		// Typed objects carry no kind; the rest is the same as for any other.
		var owner types.UID
		if controller := metav1.GetControllerOf(object); controller != nil && controller.Kind == "ReplicaSet" {
			owner = controller.UID
		}
		s.watches.ledger.SetPod(object.UID, owner, owner != "" && health.CountsForDeployment(&object.Status))
		sighting = s.watches.podSighting(object)
	case *metav1.PartialObjectMetadata:
		sighting = sightingOf(s.scope.gvk, object)
		if s.scope.gvk == replicaSetKind {
			s.setReplicaSet(object)
		}
	default:
		return ledger.Key{}, fmt.Errorf("unexpected object %T", object)
	}
	if _, isReplicaSet := object.(*unstructured.Unstructured); isReplicaSet && s.scope.gvk == replicaSetKind {
		s.setReplicaSet(object.(*unstructured.Unstructured))
	}
	s.watches.ledger.Seen(sighting)
	return sighting.Key, nil
}

func (s *sink) setReplicaSet(object metav1.Object) {
	if controller := metav1.GetControllerOf(object); controller != nil && controller.Kind == "Deployment" {
		s.watches.ledger.SetReplicaSet(object.GetUID(), controller.UID)
	}
}

// forgetPods removes what a list no longer has. With a watch a namespace the counts of other namespaces must stay, so
// that only a watch of all namespaces may tell.
func (s *sink) forgetPods(listed map[types.UID]struct{}) {
	if s.scope.namespace != "" {
		return
	}
	switch s.scope.gvk {
	case podKind:
		for _, uid := range s.watches.ledger.KnownPods() {
			if _, found := listed[uid]; !found {
				s.watches.ledger.SetPod(uid, "", false)
			}
		}
	case replicaSetKind:
		for _, uid := range s.watches.ledger.KnownReplicaSets() {
			if _, found := listed[uid]; !found {
				s.watches.ledger.SetReplicaSet(uid, "")
			}
		}
	}
}
