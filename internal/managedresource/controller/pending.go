package controller

import (
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// stillHeld reports whether the only work left is to await the objects that the last run deletes: at least one still
// exists.
func (r *Reconciler) stillHeld(mr *resourcesv1alpha1.ManagedResource, pending *lifecycle.Pending) bool {
	owner := ownerOf(mr)
	if *r.Config.ApplyWhileDeletionPending && len(r.Tracker.OutOfSync(owner)) > 0 {
		return false // Drift is repaired meanwhile.
	}
	return pending.IsCurrent(mr, r.Clock.Now()) && r.arePutOff(owner, pending.Objects)
}

// arePutOff reports whether a run would read none of the objects, and at least one still exists.
func (r *Reconciler) arePutOff(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) bool {
	found := false
	for i := range refs {
		entry := objects.RefOf(&refs[i])
		if r.Tracker.IsDeletionCompleted(owner, entry.ID, r.Clock.Now()) {
			continue
		}
		if held, _ := r.isHeld(owner, entry); !held {
			return false
		}
		found = true
	}
	return found
}

// isHeld reports whether an object that is being deleted existed less than a minute ago and no watch has reported a
// change since. err is the reason why it could not be deleted.
func (r *Reconciler) isHeld(owner objects.Owner, entry objects.Ref) (held bool, err error) {
	pending, held := r.Tracker.DeletionPends(owner, entry.ID, r.Clock.Now())
	if !held {
		return false, nil
	}
	recorded := r.Tracker.Get(entry.ID)
	another := pending.UID != "" && recorded.UID != "" && recorded.UID != pending.UID
	if recorded.Known && (!recorded.Present || another) && r.Watches.Covered(entry) {
		return false, nil
	}
	return true, pending.Err
}
