package controller

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

const (
	// stopRetry is the pause between checks of a stopped ManagedResource; nothing is requested until the stop ends.
	stopRetry = 10 * time.Second
	// namedDrift is the number of objects that the condition of a stopped ManagedResource names.
	namedDrift = 10
)

// isStopped reports whether an emergency stop counts for a ManagedResource.
func (r *Reconciler) isStopped(owner objects.Owner) bool {
	return r.Stopped != nil && r.Stopped(owner.Namespace)
}

// stop leaves a ManagedResource as it is, and reports pending work (MRX-26, MRX-27). Its Inbox keeps the requests.
func (r *Reconciler) stop(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	owner := ownerOf(mr)
	if mr.DeletionTimestamp == nil && r.nothingToDo(mr) {
		return reconcile.Result{}, nil
	}
	message := "An emergency stop is in force: nothing is applied or deleted."
	drifted := slices.DeleteFunc(r.Tracker.Progress(owner).OutOfSync,
		func(id objects.ID) bool { return !r.Tracker.DriftOf(id, r.Clock.Now()).Open })
	if drifted := namesIn(mr, drifted); len(drifted) > 0 {
		message += " Changed by others and not repaired: " + plan.JoinNames(drifted, namedDrift) + "."
	}
	change := meta.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonEmergencyStop, message)
	if before := meta.Conditions(mr.Status.Conditions).Get(change.Type); before == nil || before.Reason != change.Reason {
		r.Metrics.failures.WithLabelValues(change.Reason).Inc()
	}
	r.Tracker.PassAllOutOfSync(owner, everything)
	return reconcile.Result{RequeueAfter: kit.Jitter(stopRetry)}, r.report(ctx, mr, change)
}
