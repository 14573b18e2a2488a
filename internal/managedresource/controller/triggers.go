package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

const (
	// lastRetry limits the back-off of a failing ManagedResource: after an outage of the target for hours, it must not
	// wait for another quarter of an hour (MRB-20).
	lastRetry = time.Minute
	// gapPause is the time between two ManagedResources that are enqueued after a gap in the watch of Secrets: each
	// reads its Secrets again, and all at once would exhaust the client's rate limit for a long time.
	gapPause = 20 * time.Millisecond
)

// AddToManager adds the controller to a manager; reader is the cache of ManagedResources.
func (r *Reconciler) AddToManager(mgr manager.Manager, reader cache.Cache, cacheSyncTimeout time.Duration) error {
	return kit.Add(mgr, Name, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: *r.Config.ConcurrentSyncs,
		CacheSyncTimeout:        cacheSyncTimeout,
		SkipNameValidation:      ptr.To(true), // The engine may start the controller again.
		RateLimiter:             kit.RetriesUpTo(lastRetry),
	}, ctrlsource.Kind[client.Object](reader, &resourcesv1alpha1.ManagedResource{}, &handler.EnqueueRequestForObject{}, r.Triggers.predicate()), &r.Triggers.queue)
}

// predicate passes the events that may require a run (MRT-1 … MRT-3).
func (t *Triggers) predicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			mr, ok := e.Object.(*resourcesv1alpha1.ManagedResource)
			return ok && t.reconciler.Class.Handles(mr)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			if mr, ok := e.Object.(*resourcesv1alpha1.ManagedResource); ok {
				t.onManagedResourceGone(mr)
			}
			return true
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*resourcesv1alpha1.ManagedResource)
			after, isMR := e.ObjectNew.(*resourcesv1alpha1.ManagedResource)
			return ok && isMR && t.onManagedResourceChanged(before, after)
		},
	}
}

// onManagedResourceChanged handles a newer version of a ManagedResource that a watch reported, and reports whether a
// run is needed.
func (t *Triggers) onManagedResourceChanged(before, after *resourcesv1alpha1.ManagedResource) bool {
	lags := t.reconciler.Statuses != nil && t.reconciler.Statuses.Observed(after)
	concerns := t.reconciler.Class.Handles(after)
	isLost := t.reconciler.Class.Handles(before) && !concerns
	if concerns && isRespecified(before, after) {
		t.reconciler.states.stepPresent(after, lifecycle.SpecChanged{})
	}
	if before.UID != after.UID || isLost {
		t.onManagedResourceGone(before)
	}
	if t.reconciler.Statuses != nil {
		t.reconciler.Statuses.Compare(before, after)
	}
	return isLost || concerns && (t.asksForRun(before, after) || lags)
}

// onManagedResourceGone handles a ManagedResource that is gone, or that this instance no longer handles. Other
// ManagedResources with objects of its inventory check again who owns them, because their origin may name it, even if
// it was ignored or another one has its name now. An object that is created only once, and that it left behind, is no
// longer ours, as if it was released.
func (t *Triggers) onManagedResourceGone(mr *resourcesv1alpha1.ManagedResource) {
	if !t.reconciler.Class.Handles(mr) {
		return
	}
	for _, entry := range objects.EntriesOf(mr.Status.Resources) {
		if uid := t.reconciler.owners.CreatedFor(steps.OwnerOf(mr), entry.ID); uid != "" && steps.CreatedOnce(entry.Reference) {
			t.reconciler.Tracker.TakenOver(objects.Owner{}, entry.ID, uid)
		}
		t.reconciler.Tracker.MarkOutOfSync(entry.ID)
	}
}

// isRespecified reports whether a change of the specification changes the content to apply.
func isRespecified(before, after *resourcesv1alpha1.ManagedResource) bool {
	return before.UID == after.UID && before.Generation < after.Generation && after.DeletionTimestamp == nil &&
		!meta.Ignored(after)
}

// asksForRun reports whether a change of a ManagedResource requires a run.
func (t *Triggers) asksForRun(before, after *resourcesv1alpha1.ManagedResource) bool {
	wasIgnored, isIgnored := meta.Ignored(before), meta.Ignored(after)
	if isIgnored && wasIgnored && before.UID == after.UID && after.DeletionTimestamp == nil {
		return false
	}
	operationAsks := t.operationAsks(before, after)
	switch {
	case t.holdChanged(before, after),
		before.UID != after.UID, // Deleted and created again while the watch was interrupted.
		before.Generation != after.Generation,
		before.DeletionTimestamp == nil && after.DeletionTimestamp != nil,
		wasIgnored != isIgnored,
		operationAsks,
		// Another writer removed our finalizer.
		t.reconciler.Class.Owns(before) && !t.reconciler.Class.Owns(after) && after.DeletionTimestamp == nil,
		t.reconciler.Class.WaitsForHandOver(before) && !t.reconciler.Class.WaitsForHandOver(after),
		confirmsDeletion(before, after),
		t.reconciler.states.contradicts(after): // A former leader wrote the status.
		return true
	}
	return becameUnhealthy(before, after)
}

// holdChanged reports whether a hold has changed; if so, it marks the objects with a hold for a check.
func (t *Triggers) holdChanged(before, after *resourcesv1alpha1.ManagedResource) bool {
	changed := !meta.SameHold(before, after)
	if changed {
		t.reviewHolds(steps.OwnerOf(after))
	}
	return changed
}

// operationAsks reports whether the annotation operation requests a run, or no longer forbids one.
func (t *Triggers) operationAsks(before, after *resourcesv1alpha1.ManagedResource) bool {
	was := before.Annotations[resourcesv1alpha1.AnnotationOperation]
	is := after.Annotations[resourcesv1alpha1.AnnotationOperation]
	if was == is {
		return is == resourcesv1alpha1.OperationReconcile
	}
	t.reconciler.states.stepPresent(after, lifecycle.OperationChanged{})
	switch is {
	case resourcesv1alpha1.OperationReconcile, resourcesv1alpha1.OperationMigrate, resourcesv1alpha1.OperationRestore:
		return true
	}
	return was == resourcesv1alpha1.OperationWaitForState
}

func becameUnhealthy(before, after *resourcesv1alpha1.ManagedResource) bool {
	was := meta.Conditions(before.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy)
	is := meta.Conditions(after.Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy)
	return is == resourcesv1alpha1.ConditionFalse && (was == "" || was == resourcesv1alpha1.ConditionTrue)
}

// Triggers enqueues ManagedResources for reasons other than their own events: changes of Secrets, drift, and the end
// of holds.
type Triggers struct {
	reconciler *Reconciler

	queue kit.Queue
}

func (t *Triggers) add(owner objects.Owner, after time.Duration) {
	t.queue.AddAfter(reconcile.Request{NamespacedName: owner}, after)
}

// Drift enqueues the ManagedResource of an object that may not be in sync any more. If the repair is delayed, the
// drift is reported at once. Expected changes also enqueue the ManagedResource, but do not count as drift: a run is
// deleting the object, perhaps to recreate it; the object was terminating; or its write is to be repeated.
func (t *Triggers) Drift(owner objects.Owner, key objects.ID) {
	r := t.reconciler
	recorded := r.Tracker.Get(key)
	if r.Tracker.Releases(owner, key) || recorded.BeingDeleted || recorded.RetryPartial || r.Tracker.Pending(owner, key).UID != "" {
		t.add(owner, 0)
		return
	}
	r.Metrics.driftNoticed.WithLabelValues(key.Kind).Inc()
	t.add(owner, r.Tracker.Drift(key, r.Clock.Now(), objects.DriftNoticed).Due)
}

// Sweep checks objects when their holds end. Once a sync period, it enqueues the ManagedResources with objects that
// are out of sync, of which the API server kept only a part some time ago, or that no watch covers. It skips the
// others, because an idle process would otherwise be busy with runs that have nothing to do.
func (t *Triggers) Sweep(ctx context.Context) error {
	r := t.reconciler
	ticker := time.NewTicker(r.Config.SyncPeriod.Duration)
	defer ticker.Stop()
	ending := time.NewTimer(r.Config.SyncPeriod.Duration)
	defer ending.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			t.sweep()
		case <-ending.C:
		case <-r.holds.Changed():
		}
		if next := t.endHolds(); next > 0 {
			ending.Reset(next)
		}
	}
}

func (t *Triggers) sweep() {
	r := t.reconciler
	r.Tracker.Sweep(r.Clock.Now())
	for _, owner := range t.applied() {
		state := r.states.of(owner)
		if r.Clock.Now().Before(state.Retry.Until) {
			continue // Its next run is already scheduled.
		}
		if state.IsOutOfSync() || !r.allInSync(owner) {
			t.add(owner, r.spread())
		}
	}
}

// SecretChanged enqueues the ManagedResources that read a Secret which was written (MRT-4), or deleted if version is
// empty (MRB-21).
func (t *Triggers) SecretChanged(secret types.NamespacedName, version string) {
	for _, owner := range t.reconciler.states.secretChanged(secret, version) {
		t.add(owner, 0)
	}
}

// SecretsMissed enqueues the ManagedResources whose Secrets may have changed unnoticed.
func (t *Triggers) SecretsMissed() {
	for i, owner := range t.reconciler.states.secretsMissed() {
		t.add(owner, time.Duration(i)*gapPause)
	}
}

// String names the source in logs.
func (t *Triggers) String() string { return fmt.Sprintf("triggers of %s", Name) }
