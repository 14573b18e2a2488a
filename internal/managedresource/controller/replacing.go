package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// replacing are the objects that runs deleted to create them anew, or for good: a manifest may have such a one again before it is gone. What watches
// tell of them is no drift, and nothing delays their creation.
//
// Invariant: an object is entered before its deletion is sent, by each ManagedResource whose run does that. It is taken out when it was applied,
// whoever did that; for one of them when its deletion was refused, or when a plan neither has it nor deletes it. So there are never more of
// them than a ManagedResource has objects.
type replacing struct {
	mu    sync.Mutex
	byKey map[objects.Key]map[objects.Owner]struct{}
}

func (r *replacing) enter(key objects.Key, owner objects.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[objects.Key]map[objects.Owner]struct{}{}
	}
	if r.byKey[key] == nil {
		r.byKey[key] = map[objects.Owner]struct{}{}
	}
	r.byKey[key][owner] = struct{}{}
}

func (r *replacing) has(key objects.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey[key]) > 0
}

// applied takes out an object that is as it should be.
func (r *replacing) applied(key objects.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// refused takes out an object for a ManagedResource whose deletion of it was not carried out.
func (r *replacing) refused(key objects.Key, owner objects.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(key, owner)
}

// keep takes out the objects of a ManagedResource that it has no more.
func (r *replacing) keep(owner objects.Owner, has func(objects.Key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.byKey {
		if !has(key) {
			r.endLocked(key, owner)
		}
	}
}

func (r *replacing) endLocked(key objects.Key, owner objects.Owner) {
	if delete(r.byKey[key], owner); len(r.byKey[key]) == 0 {
		delete(r.byKey, key)
	}
}

// replace answers an update that was refused as invalid: where the object asks for it, or is an immutable ConfigMap or
// Secret, it is deleted, if it is ours, and the next run creates it (MR-33, MR-34).
func (a *applier) replace(ctx context.Context, desired *plan.Desired, live, merged *unstructured.Unstructured, cause error) error {
	annotations := merged.GetAnnotations()
	if !meta.Truthy(annotations, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate) && !isImmutable(merged, cause) {
		return cause
	}
	if meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject) || meta.Truthy(annotations, resourcesv1alpha1.AnnotationKeepObject) {
		return &completeError{fmt.Errorf("object %q can't be updated, and is not deleted to be created anew, as it is annotated with %s: %w", desired.Name(), resourcesv1alpha1.AnnotationKeepObject, cause)}
	}
	if !a.mayReplace(desired, live) {
		return &completeError{fmt.Errorf("object %q can't be updated, and is not deleted to be created anew, as nothing proves that it was created for a ManagedResource: %w", desired.Name(), cause)}
	}
	var policy metav1.DeletionPropagation
	if value, found := annotations[resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate]; found {
		policy = metav1.DeletionPropagation(value)
		supported := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}
		if !slices.Contains(supported, policy) {
			return &completeError{fmt.Errorf("invalid deletion propagation policy on object %s: %q is invalid, supported values: %v", desired.Name(), value, supported)}
		}
	}
	if err := a.asking.now(ctx); err != nil {
		return err // Nobody would create it anew.
	}
	a.replacing.enter(keyOf(desired), ownerOf(a.mr))
	a.Ledger.Touched(keyOf(desired))
	if err := a.Target.Delete(ctx, merged, policy); err != nil && !apierrors.IsNotFound(err) {
		if meta.Refused(err) {
			a.replacing.refused(keyOf(desired), ownerOf(a.mr))
		}
		return &completeError{fmt.Errorf("error deleting object %q after 'invalid' update error: %w", desired.Name(), err)}
	}
	return &completeError{fmt.Errorf("deleted object %q because of 'invalid' update error, and 'delete-on-invalid-update' annotation on object or the resource is an immutable ConfigMap/Secret: %w", desired.Name(), cause)}
}

func isImmutable(object *unstructured.Unstructured, err error) bool {
	if object.GetAPIVersion() != "v1" || (object.GetKind() != "ConfigMap" && object.GetKind() != "Secret") {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeForbidden && strings.Contains(cause.Message, "field is immutable when `immutable` is set")
	})
}
