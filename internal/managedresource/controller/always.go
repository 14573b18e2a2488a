package controller

import (
	"context"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// alwaysUpdates reports whether objects of a scope are written in each sync period though nothing differs (MRC-3c).
func (r *Reconciler) alwaysUpdates(scope config.AlwaysUpdateScope) bool {
	unwatched := r.Config.AlwaysUpdateScope == config.AlwaysUpdateUnwatched
	return *r.Config.AlwaysUpdate && unwatched == (scope == config.AlwaysUpdateUnwatched)
}

// applied returns the ManagedResources that were applied completely, and asks for the updates of a sync period: a full
// run for each, or one for those with objects that no watch covers.
func (t *Triggers) applied() []objects.Owner {
	r := t.reconciler
	owners := r.states.applied()
	all, unwatched := r.alwaysUpdates(config.AlwaysUpdateAll), r.alwaysUpdates(config.AlwaysUpdateUnwatched)
	for _, owner := range owners {
		if all || unwatched && !r.covered(r.Tracker.Progress(owner).Refs) {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{All: all})
		}
	}
	return owners
}

// rewrites reports whether an object is written though it may be in sync; an object that is created only once is not
// (MR-30). It waits for the first list of the object's kind while that is under way: a watch may cover the object from
// then on.
func (a *applier) rewrites(ctx context.Context, desired *plan.Desired) bool {
	if desired.CreateOnly {
		return false
	}
	return a.alwaysUpdates(config.AlwaysUpdateAll) && a.taken.VisitsUnknown() ||
		a.alwaysUpdates(config.AlwaysUpdateUnwatched) && (a.taken.VisitsUnknown() || a.taken.Periodic) && !a.Watches.AwaitCovered(ctx, desired.Ref)
}
