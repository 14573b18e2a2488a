package controller

import (
	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// alwaysUpdate returns the objects that are written in each sync period though nothing differs (MRC-3c); empty is none.
func (r *Reconciler) alwaysUpdate() config.AlwaysUpdateScope {
	switch {
	case !*r.Config.AlwaysUpdate:
		return ""
	case r.Config.AlwaysUpdateScope == config.AlwaysUpdateUnwatched:
		return config.AlwaysUpdateUnwatched
	}
	return config.AlwaysUpdateAll
}

// applied returns the ManagedResources that were applied completely, and asks for the updates of a sync period: a full
// run for each, or one for those with objects that no watch covers.
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
