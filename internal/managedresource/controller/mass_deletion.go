package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// deferDeletion ends a run that would delete many objects, or precious ones, because their manifests vanished, until
// the deletion is confirmed or has waited long enough (MRX-20 … MRX-23). The wait counts only while this process
// observes the condition without a gap, so that users could see it, too: after a restart or an outage of the source,
// it starts again.
func (r *normalRun) deferDeletion(ctx context.Context) error {
	if len(r.planned.Delete) == 0 {
		r.reconciler.states.seesPending(r.mr, "", 0)
		if r.confirmsReplacement(r.mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]) {
			return nil // The end of the run removes the confirmation.
		}
		return r.endConfirmation(ctx)
	}
	deletion, err := r.deletion(ctx)
	if err != nil {
		return err
	}
	wait := r.reconciler.massDeletionWait()
	change := meta.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDeletionHeld, deletion.Message(wait))
	isPending := shows(r.mr, change)
	var waited time.Duration
	if isPending && wait > 0 {
		if waited, err = r.waited(ctx, change, wait); err != nil {
			return err
		}
	}
	switch deletion.Judge(wait, r.mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion], waited) {
	case brake.Ordinary:
		return nil
	case brake.Observed:
		// An earlier run that failed may have reported the same deletion.
		known := r.reconciler.states.get(r.mr).MassDeletion.Message == deletion.String()
		if r.reconciler.states.seesPending(r.mr, deletion.String(), 0); !known {
			r.reconciler.Metrics.apply.MassDeletions.WithLabelValues("observed").Inc()
			r.reconciler.Events.Warn(ctx, r.mr, apply.ReasonMassDeletion, "Deleting "+deletion.String())
		}
		return nil
	case brake.Confirmed:
		if isPending {
			r.reconciler.Metrics.apply.MassDeletions.WithLabelValues("confirmed").Inc()
		}
		return nil
	case brake.Elapsed: // The annotation outlives the condition, which changes with the first deletion.
		r.reconciler.Metrics.apply.MassDeletions.WithLabelValues("elapsed").Inc()
		return r.setConfirmation(ctx, deletion.Checksum())
	case brake.Waits:
	}
	if !isPending {
		r.reconciler.states.seesPending(r.mr, "", 0)
		r.reconciler.Metrics.apply.MassDeletions.WithLabelValues("held").Inc()
		r.reconciler.Metrics.failures.WithLabelValues(change.Reason).Inc()
	}
	r.result.RequeueAfter = min(wait-waited, seeEvery(wait))
	if err := r.reconciler.source.Report(ctx, r.mr, change); err != nil {
		return err
	}
	if !isPending {
		r.reconciler.states.seesPending(r.mr, change.Message, seenWithin(wait))
	}
	return errDone
}

// massDeletionWait returns the time for which a mass deletion waits; zero if mass deletions do not wait.
func (r *Reconciler) massDeletionWait() time.Duration {
	return ptr.Deref(r.Config.MassDeletion.Wait, metav1.Duration{}).Duration
}

// endConfirmation removes the confirmation once nothing is left to delete: it does not cover a later deletion of the
// same objects (MRX-22).
func (r *normalRun) endConfirmation(ctx context.Context) error {
	if _, found := r.mr.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]; !found || len(r.planned.Unmatched) > 0 {
		return nil
	}
	return r.setConfirmation(ctx, nil)
}

// setConfirmation sets the annotation that confirms a deletion; nil removes it.
func (r *normalRun) setConfirmation(ctx context.Context, checksum any) error {
	annotations := map[string]any{resourcesv1alpha1.AnnotationConfirmDeletion: checksum}
	next, err := r.reconciler.Statuses.PatchMetadata(ctx, r.mr, map[string]any{"annotations": annotations}, true)
	switch {
	case apierrors.IsNotFound(err):
		return errDone
	case apierrors.IsConflict(err):
		return steps.ErrSuperseded
	case err != nil:
		return fmt.Errorf("annotating the ManagedResource: %w", err)
	}
	r.mr = next
	return nil
}

// deletion returns the deletion that the run would make. It leaves out objects that are not deleted: those of other
// ManagedResources and of the garbage collector, kept ones, and those that were never written.
func (r *normalRun) deletion(ctx context.Context) (brake.Deletion, error) {
	stays := func(ref resourcesv1alpha1.ObjectReference) bool {
		return meta.Tentative(&ref) || meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationKeepObject) ||
			r.reconciler.GarbageCollector && ownership.IsCollectable(ref.APIVersion, ref.Kind, ref.Labels)
	}
	d := brake.Deletion{
		Had:     len(slices.DeleteFunc(slices.Clone(r.mr.Status.Resources), stays)),
		Objects: slices.DeleteFunc(slices.Clone(r.planned.Delete), stays),
		Stay:    r.keys,
	}
	if last := r.taken.Last; last != nil {
		d.Manifests = last.Manifests
	}
	if !d.IsMass() {
		return d, nil
	}
	others, err := r.reconciler.owners.ClaimsOn(ctx, steps.OwnerOf(r.mr), objects.EntriesOf(d.Objects))
	if err != nil {
		return d, err
	}
	before := len(d.Objects)
	d.Objects = slices.DeleteFunc(d.Objects, func(ref resourcesv1alpha1.ObjectReference) bool {
		claims, _ := others.On(objects.IDOfEntry(&ref)) // With an error, the deletion of the object fails later.
		_, inherited := ownership.NextOwner(claims)
		return inherited && !*r.reconciler.Config.DeleteForeignObjects
	})
	d.Had -= before - len(d.Objects)
	return d, nil
}

// waited returns the time for which this process has observed the condition without a gap. It reads from the API
// server, so that time counts only while the source answers.
func (r *normalRun) waited(ctx context.Context, change meta.ConditionChange,
	wait time.Duration) (time.Duration, error) {
	live, err := r.reconciler.source.Confirm(ctx, r.mr)
	if err != nil || !shows(live, change) {
		r.reconciler.states.seesPending(r.mr, "", 0)
		return 0, err
	}
	return r.reconciler.states.seesPending(r.mr, change.Message, seenWithin(wait)), nil
}

// shows reports whether the status has the condition with the same reason and message.
func shows(mr *resourcesv1alpha1.ManagedResource, change meta.ConditionChange) bool {
	condition := meta.Conditions(mr.Status.Conditions).Get(change.Type)
	return condition != nil && condition.Reason == change.Reason && condition.Message == change.Message
}

// seeEvery returns the interval at which runs read the condition of a deletion that waits.
func seeEvery(wait time.Duration) time.Duration { return min(wait/10, time.Minute) }

// seenWithin returns the longest time between two reads of the condition that does not count as a gap.
func seenWithin(wait time.Duration) time.Duration { return 2*seeEvery(wait) + 10*time.Second }

// confirmsDeletion reports whether a change of a ManagedResource confirms a deletion.
func confirmsDeletion(before, after *resourcesv1alpha1.ManagedResource) bool {
	was := before.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]
	is := after.Annotations[resourcesv1alpha1.AnnotationConfirmDeletion]
	return is != "" && is != was
}

// confirmsReplacement reports whether a confirmation is for the replacement of an object of the plan.
func (r *normalRun) confirmsReplacement(confirmed string) bool {
	return slices.ContainsFunc(r.planned.Apply, func(desired *plan.Desired) bool {
		return brake.IsPrecious(desired.Ref.GroupKind()) && brake.Replacement(desired.Reference).Checksum() == confirmed
	})
}
