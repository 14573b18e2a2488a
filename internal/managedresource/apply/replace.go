package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// replacement replaces an object whose update was refused as invalid.
type replacement struct {
	attempt *attempt
	cause   error
}

// try deletes the object, so that the next run creates it, if its annotation requests that or it is an immutable
// ConfigMap or Secret, and if it is ours (MR-33, MR-34). It returns the error of the attempt.
func (r replacement) try(ctx context.Context) error {
	a, cause := r.attempt, r.cause
	live, merged := a.live, a.merged
	annotations := merged.GetAnnotations()
	if !meta.Truthy(annotations, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate) && !isImmutable(merged, cause) {
		return r.withHelp()
	}
	if meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject) ||
		meta.Truthy(annotations, resourcesv1alpha1.AnnotationKeepObject) {
		return &completeError{fmt.Errorf("object %q can't be updated, and is not deleted and recreated, because it is annotated with %s: %w",
			a.desired.Name(), resourcesv1alpha1.AnnotationKeepObject, cause)}
	}
	if !r.isOwn() {
		return &completeError{fmt.Errorf("object %q can't be updated, and is not deleted and recreated, because nothing proves that it was created for a ManagedResource: %w", a.desired.Name(), cause)}
	}
	if field := merge.KeptField(a.desired.Unstructured, merged, refusedFields(cause)); field != "" {
		return &completeError{fmt.Errorf("object %q can't be updated, and is not deleted and recreated, because the refused field %s is not from its manifest, but kept from the object: %w", a.desired.Name(), field, cause)}
	}
	var policy metav1.DeletionPropagation
	if value, found := annotations[resourcesv1alpha1.AnnotationDeletionPropagationOnInvalidUpdate]; found {
		policy = metav1.DeletionPropagation(value)
		supported := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
			metav1.DeletePropagationOrphan}
		if !slices.Contains(supported, policy) {
			return &completeError{fmt.Errorf("invalid deletion propagation policy on object %s: %q is invalid, supported values: %v",
				a.desired.Name(), value, supported)}
		}
	}
	if err := r.confirm(); err != nil {
		return err
	}
	if err := a.freshness.Check(ctx, steps.Live); err != nil {
		return err // If the run is outdated, no run might create the object again.
	}
	if brake.IsPrecious(a.desired.Ref.GroupKind()) && a.MassDeletionWait == 0 {
		a.Metrics.MassDeletions.WithLabelValues("observed").Inc()
		a.Events.Warn(ctx, a.mr, ReasonMassDeletion, fmt.Sprintf("Deleting %s to create it anew", a.desired.Name()))
	}
	a.ticket.Record(objects.Deleting)
	if err := a.Target.Delete(ctx, merged, policy); err != nil && !apierrors.IsNotFound(err) {
		if meta.Refused(err) {
			a.ticket.Record(objects.Refused)
		}
		return &completeError{fmt.Errorf("error deleting object %q after 'invalid' update error: %w", a.desired.Name(), err)}
	}
	steps.Deleted(ctx, a.desired.Name(), "the object is recreated")
	return &completeError{&recreation{fmt.Errorf("deleted object %q because of 'invalid' update error, and 'delete-on-invalid-update' annotation on object or the resource is an immutable ConfigMap/Secret: %w", a.desired.Name(), cause)}}
}

// confirm returns an error if the replacement of an object would also delete objects or data that no manifest
// contains, and is not confirmed (MRX-29).
func (r replacement) confirm() error {
	a, cause := r.attempt, r.cause
	if !brake.IsPrecious(a.desired.Ref.GroupKind()) || a.MassDeletionWait == 0 {
		return nil
	}
	deletion := brake.Replacement(a.desired.Reference)
	if a.mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion] == deletion.Checksum() {
		return nil
	}
	return &completeError{fmt.Errorf("object %q can't be updated, and is deleted and recreated, with everything that belongs to it, only once the ManagedResource has the annotation %s: %w",
		a.desired.Name(), deletion.ToConfirm(), cause)}
}

// isOwn reports whether an object may be deleted and recreated: its origin names a ManagedResource of this source; or
// it has no valid origin, and this process created it, or the inventory records that it was created for this
// ManagedResource.
func (r replacement) isOwn() bool {
	a := r.attempt
	if origin, err := meta.ParseOrigin(a.live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]); err == nil {
		return a.Owners.IsOfThisSource(origin)
	}
	uid := a.live.GetUID()
	return isRecorded(a.desired, uid) || uid != "" && a.Tracker.Get(a.desired.Ref.ID).Created == uid
}

// refusedFields returns the fields that the refusal of an update names.
func refusedFields(err error) (fields []string) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// ReasonMassDeletion is the reason of the Event about a deletion that would have waited (MRX-23).
const ReasonMassDeletion = "MassDeletion"

// errRecreated marks the error of an object that was deleted so that the next run creates it.
var errRecreated = errors.New("the object is recreated")

// recreation is an error that also matches errRecreated.
type recreation struct{ error }

func (e *recreation) Unwrap() []error { return []error{e.error, errRecreated} }

// withHelp adds to the error of a refused update the annotation that lets the object be replaced, if that would help
// (MR-36): a field is immutable, and the object is ours and may be deleted.
func (r replacement) withHelp() error {
	a, cause := r.attempt, r.cause
	keeps := meta.Truthy(a.live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject) ||
		meta.Truthy(a.merged.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject)
	if keeps || !strings.Contains(cause.Error(), "immutable") || !r.isOwn() {
		return cause
	}
	return fmt.Errorf("%w; to have the object deleted and created anew, annotate it in its manifest with %s: \"true\"",
		cause, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate)
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
		return cause.Type == metav1.CauseTypeForbidden &&
			strings.Contains(cause.Message, "field is immutable when `immutable` is set")
	})
}

// IsRefusal reports whether the API server refused every failed object for its content, so that a retry can succeed
// only after the manifest or another object changes.
func IsRefusal(err error) bool {
	if joined, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // Each error of the list counts.
		return !slices.ContainsFunc(joined.Unwrap(), func(each error) bool { return !IsRefusal(each) })
	}
	return (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !errors.Is(err, errRecreated)
}
