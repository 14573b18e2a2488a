package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// reconcileNormal applies the manifests in the Secrets to the target cluster (MR-6 … MR-13).
func (r *Reconciler) reconcileNormal(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	mr, err := r.ensureFinalizer(ctx, mr)
	if err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	if mr, err = r.completeHold(ctx, mr); err != nil || mr == nil {
		return reconcile.Result{}, err
	}
	taken, idle := r.begin(mr)
	if taken == nil {
		return idle, nil
	}
	run := &normalRun{reconciler: r, mr: mr, taken: taken, reading: r.Secrets.Reading()}
	defer run.close()
	for _, step := range []func(context.Context) error{
		run.readSecrets,   // The manifests, read once for all steps.
		run.makePlan,      // The objects to apply, to delete and to release.
		run.deferDeletion, // A deletion that may be an accident waits, and with it the run.
		run.confirmLost,   // No object is left out by outdated Secrets. From now on drift is reported.
		// From now on, other runs take into account which objects this one applies and releases.
		run.claimObjects,
		run.announce,       // The inventory has every object before the first write (MR-9).
		run.deleteOld,      // Old objects end before new ones are applied (MR-10), unless configured otherwise.
		run.releaseIgnored, // Objects that are ignored from now on lose their origin.
		run.applyObjects,   // The writes, kind by kind.
		run.reportApplied,  // The status shows the result, unless the run is superseded.
	} {
		switch err := step(ctx); {
		case errors.Is(err, errDone):
			return run.result, nil
		case err != nil:
			return reconcile.Result{}, err
		}
	}
	return run.result, nil
}

// errDone ends a run that has nothing more to do.
var errDone = errors.New("the run has nothing more to do")

// normalRun is a run that applies the manifests of a ManagedResource. Its steps communicate through these fields, in
// order.
type normalRun struct {
	reconciler *Reconciler
	// mr is the version that the run handles, with the inventory that it announced.
	mr *resourcesv1alpha1.ManagedResource
	// taken is the input that the run took over from the Inbox.
	taken   *lifecycle.Run
	reading *source.Reading
	// decoded has the objects of the manifests, until they are planned.
	decoded decode.Result
	content content
	planned *plan.Plan
	// keys are the objects of the plan; lost are the entries of the inventory whose objects no manifest has any more.
	keys      []objects.ID
	lost      []resourcesv1alpha1.ObjectReference
	freshness *steps.Freshness
	// pending is one error for each old object that is not gone.
	pending []error
	applied *apply.Run
	result  reconcile.Result
	// closing ends the claims of the run.
	closing func()
}

func (r *normalRun) close() {
	if r.closing != nil {
		r.closing()
	}
}

// begin takes over the requests for a ManagedResource. If there is nothing to do, it returns nil, and the time of the
// next check.
func (r *Reconciler) begin(mr *resourcesv1alpha1.ManagedResource) (*lifecycle.Run, reconcile.Result) {
	if wait := r.states.waitForSource(mr); wait > 0 {
		r.Metrics.sourceRunsDelayed.Inc()
		return nil, reconcile.Result{RequeueAfter: wait}
	}
	rests, pending := r.nothingToDo(mr), r.states.get(mr).Pending
	event := lifecycle.RunBegins{Reported: rests, InSync: rests, OnlyPending: pending != nil && r.onlyDeletionPending(mr, pending)}
	taken, commands := r.states.begin(mr, event)
	if commands.Has(lifecycle.AwaitDeletion) {
		return nil, reconcile.Result{RequeueAfter: pendingRetry}
	}
	return taken, reconcile.Result{} // Without a run, the sweep finds the next reason for a run.
}

// readSecrets reads the manifests.
func (r *normalRun) readSecrets(ctx context.Context) error {
	decoded, versions, err := read(ctx, r.mr, r.reading)
	if err != nil {
		return r.fail(ctx, resourcesv1alpha1.ReasonCannotReadSecret, err)
	}
	if r.taken.ReadOutdated(versions) {
		return steps.ErrSuperseded
	}
	r.decoded = decoded
	r.content = content{errors: decoded.Errors, versions: versions, checksum: sync.OnceValue(decoded.Checksum),
		ignored: ignoredOf(decoded.Objects)}
	if r.taken.HasRead(r.mr.Generation, versions) {
		r.content.checksum = func() string { return r.taken.Last.Checksum }
	}
	steps.SetChecksum(ctx, r.content.checksum)
	r.freshness = steps.NewFreshness(ctx, r.reconciler.source, r.reconciler.Clock, r.mr, steps.Secrets{
		Reading: r.reading, Newer: func() bool { return r.reconciler.states.newer(r.mr, versions) },
	})
	return nil
}

// makePlan compares the manifests with the inventory.
func (r *normalRun) makePlan(ctx context.Context) error {
	r.planned = plan.NewPlan(r.decoded, r.mr.Status.Resources, plan.Options{
		Spec: &r.mr.Spec, Origin: r.reconciler.owners.Origin(steps.OwnerOf(r.mr)), ManagedByLabelValue: *r.reconciler.Config.ManagedByLabelValue,
		Scope: func(gvk schema.GroupVersionKind) (plan.Scope, error) { return r.reconciler.Target.Scope(ctx, gvk) },
	})
	r.keys, r.lost = r.planned.Keys(), slices.Concat(r.planned.Delete, r.planned.Release)
	r.decoded = decode.Result{}
	return nil
}

// confirmLost checks, if the plan leaves objects out, that the Secrets are still as they were read: other
// ManagedResources rely on the objects that this one keeps. Then the watches follow the planned objects.
func (r *normalRun) confirmLost(ctx context.Context) error {
	if len(r.lost) > 0 {
		if err := r.freshness.Check(ctx, steps.Live); err != nil {
			return err
		}
	}
	r.reconciler.track(steps.OwnerOf(r.mr), r.planned, r.mr.Status.Resources)
	return nil
}

// claimObjects claims the objects of the plan, and gives up the lost ones. While another run waits for the answer to
// a request about one of them, the run ends here, and is repeated.
func (r *normalRun) claimObjects(context.Context) error {
	owner := steps.OwnerOf(r.mr)
	end, busy := r.reconciler.Tracker.Claim(owner, r.keys, refsOf(r.lost))
	if busy {
		r.result.RequeueAfter = busyRetry
		return errDone
	}
	r.closing = end
	return nil
}

// deleteOld deletes the objects that no manifest has any more. While one still exists, the run ends here, or reports
// it only at the end, so that the condition does not flip with each run.
func (r *normalRun) deleteOld(ctx context.Context) error {
	task := r.reconciler.pruneTask(r.mr, r.planned.Delete, r.freshness)
	task.Planned = r.keys
	pruned, err := r.reconciler.pruner.Prune(ctx, task)
	if err == nil && len(pruned.HandedOver) > 0 {
		err = r.forget(ctx, pruned.HandedOver)
	}
	r.pending = pruned.Pending
	if err != nil || r.pending == nil {
		return err
	}
	if *r.reconciler.Config.ApplyWhileDeletionPending {
		r.planned.Unmatched = append(r.planned.Unmatched, r.planned.Delete...)
		r.planned.Inventory = append(r.planned.Inventory, r.planned.Delete...)
		plan.SortReferences(r.planned.Inventory)
		return nil
	}
	change := pendingChange(r.pending, r.mr)
	r.awaitDeletion(change, meta.InventoryDigest(r.mr.Status.Resources))
	if err := r.reconciler.source.Report(ctx, r.mr, change); err != nil {
		return err
	}
	return errDone
}

// forget removes objects that were handed over from the inventory, at once. Otherwise two ManagedResources that both
// left an object, and whose runs fail, would hand it to each other for ever.
func (r *normalRun) forget(ctx context.Context, handedOver []objects.ID) error {
	without := func(refs []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
		return slices.DeleteFunc(slices.Clone(refs), func(ref resourcesv1alpha1.ObjectReference) bool {
			return slices.Contains(handedOver, objects.IDOfEntry(&ref))
		})
	}
	next, err := r.reconciler.source.Update(ctx, r.mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		inventory := without(current.Status.Resources)
		return &source.Change{Resources: &inventory}
	})
	if err != nil {
		return err
	}
	if next == nil {
		return errDone // The ManagedResource is gone.
	}
	r.mr, r.planned.Delete = next, without(r.planned.Delete)
	r.freshness.Announced(next)
	return nil
}

// awaitDeletion records the results of a run that waits for the end of old objects, and schedules the next check,
// because there may be no watch that reports the end.
func (r *normalRun) awaitDeletion(applied meta.ConditionChange, inventory uint64) {
	r.reconciler.states.stepPresent(r.mr, lifecycle.DeletionsPending{Pending: lifecycle.Pending{
		Generation: r.mr.Generation, Applied: applied, Inventory: inventory, Objects: r.planned.Delete, Until: r.reconciler.nextSync(),
	}})
	r.result.RequeueAfter = pendingRetry
}

// releaseIgnored releases the objects that are ignored from now on.
func (r *normalRun) releaseIgnored(ctx context.Context) error {
	err := r.reconciler.pruner.Release(ctx, r.mr, r.planned.Release, r.freshness)
	if err == nil || errors.Is(err, steps.ErrSuperseded) {
		return err
	}
	return r.fail(ctx, resourcesv1alpha1.ReasonReleaseOfOrphansFailed, err)
}

// applyObjects creates and updates objects.
func (r *normalRun) applyObjects(ctx context.Context) error {
	go func() {
		defer func() { _ = recover() }() // The run's own call panics again.
		r.content.checksum()             // It is needed at the end, and is computed during the requests.
	}()
	r.applied = r.reconciler.applier.Begin(r.mr, r.planned, r.taken, r.freshness)
	err := r.applied.Apply(ctx)
	if r.taken.Full {
		r.reconciler.states.stepPresent(r.mr, lifecycle.ObjectsVisited{Objects: r.applied.Visited()})
	}
	if err != nil && !errors.Is(err, steps.ErrSuperseded) {
		err = r.fail(ctx, resourcesv1alpha1.ReasonApplyFailed, err)
	}
	return r.recordIfSuperseded(ctx, err)
}

// reportApplied reports the result. Objects that wait for their repair, or for their deletion, requeue the
// ManagedResource.
func (r *normalRun) reportApplied(ctx context.Context) error {
	completed, err := r.finish(ctx)
	if err != nil {
		return r.recordIfSuperseded(ctx, err)
	}
	if r.pending != nil {
		r.awaitDeletion(completed.Applied, completed.Inventory)
		return nil
	}
	r.result.RequeueAfter = r.applied.Delayed()
	return r.endConfirmation(ctx)
}

// track makes the watches report the objects of a plan and of an inventory.
func (r *Reconciler) track(owner objects.Owner, planned *plan.Plan, inventory []resourcesv1alpha1.ObjectReference) {
	refs := make([]objects.Ref, 0, len(planned.Apply)+len(inventory))
	for _, desired := range planned.Apply {
		refs = append(refs, desired.Ref)
	}
	r.Watches.Track(owner, append(refs, refsOf(inventory)...))
}

// fail reports an error in the condition and returns it, so that the queue backs off.
func (r *normalRun) fail(ctx context.Context, reason string, cause error) error {
	mr, done := r.mr, r.applied                    // done is nil if the run wrote nothing.
	ends := errors.Is(ctx.Err(), context.Canceled) // The process ends, which proves nothing about the ManagedResource.
	if !ends {
		r.reconciler.Metrics.failures.WithLabelValues(reason).Inc()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		cause = fmt.Errorf("not done within the sync period of %s: %w", r.reconciler.Config.SyncPeriod.Duration, cause)
	}
	refused := !ends && reason == resourcesv1alpha1.ReasonApplyFailed && apply.IsRefusal(cause)
	r.reconciler.states.stepPresent(mr, lifecycle.RunFailed{Content: r.content.name(mr.Generation), Refused: refused})
	_, err := r.reconciler.source.Update(ctx, mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		change := &source.Change{Stalled: refused}
		if !ends {
			change.Conditions = []meta.ConditionChange{meta.Applied(resourcesv1alpha1.ConditionFalse, reason, cause.Error())}
		}
		if done != nil {
			inventory := done.PartialInventory(current.Status.Resources)
			change.Resources = &inventory
		}
		return change
	})
	if errors.Is(err, steps.ErrSuperseded) {
		return err // The content that failed is outdated.
	}
	if refused && err == nil {
		r.reconciler.Triggers.add(steps.OwnerOf(mr), r.reconciler.states.get(mr).Retry.Until.Sub(r.reconciler.Clock.Now()))
		return reconcile.TerminalError(cause)
	}
	return errors.Join(cause, err)
}

// recordIfSuperseded records the writes of a superseded run: only the inventory shows the next run which objects to
// remove once no manifest has them. It returns err.
func (r *normalRun) recordIfSuperseded(ctx context.Context, err error) error {
	if errors.Is(err, steps.ErrSuperseded) {
		r.recordPartialInventory(ctx)
	}
	return err
}
