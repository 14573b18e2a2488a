package controller

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/prune"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// reconcileDelete deletes the objects of a ManagedResource that is being deleted, or moved to another class, and
// removes its finalizer (MRX-1 … MRX-4).
func (r *Reconciler) reconcileDelete(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	r.states.step(mr, lifecycle.DeletionBegins{})
	owner := steps.OwnerOf(mr)
	r.track(owner, &plan.Plan{}, mr.Status.Resources)
	end, busy := r.Tracker.Claim(owner, nil, refsOf(mr.Status.Resources))
	if busy {
		return reconcile.Result{RequeueAfter: busyRetry}, nil
	}
	defer end()
	if err := r.source.Report(ctx, mr, meta.DeletingChanges()...); err != nil {
		return reconcile.Result{}, err
	}
	if !ptr.Deref(mr.Spec.KeepObjects, false) && len(mr.Status.Resources) > 0 {
		if err := r.source.Report(ctx, mr, deletionStarts(mr)); err != nil {
			return reconcile.Result{}, err
		}
		pruned, err := r.pruner.Prune(ctx, r.pruneTask(mr, mr.Status.Resources,
			steps.NewFreshness(ctx, r.source, r.Clock, mr, steps.Secrets{})))
		if err != nil {
			return reconcile.Result{}, err
		}
		if pruned.Pending != nil {
			return reconcile.Result{RequeueAfter: pendingRetry}, r.source.Report(ctx, mr, pendingChange(pruned.Pending, mr))
		}
	}
	return reconcile.Result{}, deletion{r, mr}.end(ctx)
}

// deletion is the last step for a ManagedResource whose objects are deleted or kept.
type deletion struct {
	reconciler *Reconciler
	mr         *resourcesv1alpha1.ManagedResource
}

// end removes the finalizer and forgets the ManagedResource.
func (d deletion) end(ctx context.Context) error {
	if ptr.Deref(d.mr.Spec.KeepObjects, false) {
		d.disownKept()
	}
	var err error
	if d.mr, err = d.voidRecords(ctx); err != nil || d.mr == nil {
		return err
	}
	if err := d.removeFinalizer(ctx); err != nil {
		return err // Other ManagedResources must find its objects until it is gone.
	}
	d.reconciler.dropState(steps.OwnerOf(d.mr))
	return nil
}

// disownKept records that objects which are created only once, and which the ManagedResource created and keeps in the
// target, are no longer its own, as if it released them.
func (d deletion) disownKept() {
	for _, entry := range objects.EntriesOf(d.mr.Status.Resources) {
		uid := cmp.Or(d.reconciler.owners.CreatedFor(steps.OwnerOf(d.mr), entry.ID), entry.Reference.UID)
		if steps.CreatedOnce(entry.Reference) && uid != "" {
			d.reconciler.Tracker.TakenOver(objects.Owner{}, entry.ID, uid)
		}
	}
}

// voidRecords removes, from the inventory of a ManagedResource that moves to another class, the records that objects
// were created for it (MR-30). These objects are gone, or belong to another ManagedResource, which may release them.
// With the record as a proof, the next instance would delete them as its own.
func (d deletion) voidRecords(ctx context.Context) (*resourcesv1alpha1.ManagedResource, error) {
	isRecord := func(ref *resourcesv1alpha1.ObjectReference) bool {
		return steps.CreatedOnce(ref) && !meta.Tentative(ref)
	}
	if d.mr.DeletionTimestamp != nil || !slices.ContainsFunc(d.mr.Status.Resources,
		func(ref resourcesv1alpha1.ObjectReference) bool { return isRecord(&ref) }) {
		return d.mr, nil
	}
	return d.reconciler.source.Update(ctx, d.mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		inventory := slices.Clone(current.Status.Resources)
		for i := range inventory {
			if isRecord(&inventory[i]) {
				inventory[i] = meta.AsTentative(inventory[i])
			}
		}
		return &source.Change{Resources: &inventory}
	})
}

func deletionStarts(mr *resourcesv1alpha1.ManagedResource) meta.ConditionChange {
	message := meta.MessageDeleting
	if present := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied); present != nil {
		switch present.Reason {
		case resourcesv1alpha1.ReasonDeletionPending, resourcesv1alpha1.ReasonDeletionFailed:
			message = present.Message
		}
	}
	return meta.Applied(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionPending, message)
}

func (d deletion) removeFinalizer(ctx context.Context) error {
	latest, err := d.reconciler.Statuses.Get(ctx, steps.OwnerOf(d.mr))
	if apierrors.IsNotFound(err) || (err == nil && latest.UID != d.mr.UID) {
		return nil
	}
	if err != nil {
		return err
	}
	if !d.reconciler.Class.SameDesiredState(d.mr, latest) {
		return steps.ErrSuperseded
	}
	finalizers := slices.DeleteFunc(slices.Clone(latest.Finalizers),
		func(f string) bool { return f == d.reconciler.Class.Finalizer() })
	_, err = d.reconciler.Statuses.PatchMetadata(ctx, latest, map[string]any{"finalizers": finalizers}, true)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// pruneTask returns the task to delete objects of an inventory.
func (r *Reconciler) pruneTask(mr *resourcesv1alpha1.ManagedResource, entries []resourcesv1alpha1.ObjectReference,
	freshness *steps.Freshness) prune.Task {
	task := prune.Task{MR: mr, Entries: entries, Freshness: freshness, Reason: "no manifest has the object"}
	switch {
	case mr.DeletionTimestamp != nil:
		task.Reason = "the ManagedResource is deleted"
	case r.Class.MovedAway(mr):
		task.Reason = "the class of the ManagedResource changed"
	}
	task.Retry = len(entries) > 0 && r.states.step(mr, lifecycle.PruneBegins{}).Has(lifecycle.RetryDeletions)
	return task
}

// onlyDeletionPending reports whether the only work left is to wait for the end of the objects that the last run
// deleted, at least one of which still exists.
func (r *Reconciler) onlyDeletionPending(mr *resourcesv1alpha1.ManagedResource, pending *lifecycle.Pending) bool {
	owner := steps.OwnerOf(mr)
	if *r.Config.ApplyWhileDeletionPending {
		deleted := sets.New[objects.ID]()
		for i := range pending.Objects {
			deleted.Insert(objects.IDOfEntry(&pending.Objects[i]))
		}
		if !deleted.HasAll(r.Tracker.Progress(owner).OutOfSync...) {
			return false // Drift of other objects is repaired meanwhile.
		}
	}
	return pending.IsCurrent(mr, r.Clock.Now()) && r.pruner.OnlyPending(owner, pending.Objects)
}
