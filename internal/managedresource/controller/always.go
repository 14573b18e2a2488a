package controller

import (
	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// alwaysUpdate returns which objects are written in each sync period even if nothing differs (MRC-3c); empty for
// none.
func (r *Reconciler) alwaysUpdate() config.AlwaysUpdateScope {
	switch {
	case !*r.Config.AlwaysUpdate:
		return ""
	case r.Config.AlwaysUpdateScope == config.AlwaysUpdateUnwatched:
		return config.AlwaysUpdateUnwatched
	}
	return config.AlwaysUpdateAll
}

// applied returns the ManagedResources that were applied completely, and requests the runs that alwaysUpdate requires
// in each sync period: for all of them, or for those with objects that no watch covers.
func (t *Triggers) applied() []objects.Owner {
	r := t.reconciler
	owners := r.states.applied()
	all, unwatched := r.alwaysUpdate() == config.AlwaysUpdateAll, r.alwaysUpdate() == config.AlwaysUpdateUnwatched
	for _, owner := range owners {
		if all || unwatched && !r.covered(r.Tracker.Progress(owner).Refs) {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{All: all})
		}
	}
	return owners
}
