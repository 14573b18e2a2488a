package controller

import (
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// stillHeld reports whether a run would find what the last one left, which ended while objects were being deleted: one of
// them at least is not gone, and nothing else is to be done.
func (r *Reconciler) stillHeld(mr *resourcesv1alpha1.ManagedResource, pending *lifecycle.Pending) bool {
	owner := ownerOf(mr)
	if *r.Config.ApplyWhileDeletionPending && len(r.Tracker.OutOfSync(owner)) > 0 {
		return false // Drift is repaired meanwhile.
	}
	return pending.IsCurrent(mr, r.Clock.Now()) && r.arePutOff(owner, pending.Objects)
}

// arePutOff reports whether a run would read none of the objects, and at least one of them is not gone.
func (r *Reconciler) arePutOff(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) bool {
	found := false
	for i := range refs {
		entry := objects.RefOf(&refs[i])
		if r.Tracker.IsDeletionCompleted(owner, entry.Key, r.Clock.Now()) {
			continue
		}
		if held, _ := r.isHeld(owner, entry); !held {
			return false
		}
		found = true
	}
	return found
}

// isHeld reports whether an object that is to go was there less than a minute ago and no watch has reported a change
// since, and why it is still there.
func (r *Reconciler) isHeld(owner objects.Owner, entry objects.Ref) (held bool, err error) {
	pending, held := r.Tracker.DeletionPends(owner, entry.Key, r.Clock.Now())
	if !held {
		return false, nil
	}
	recorded := r.Tracker.Get(entry.Key)
	another := pending.UID != "" && recorded.UID != "" && recorded.UID != pending.UID
	if recorded.Known && (!recorded.Present || another) && r.Watches.Covered(entry) {
		return false, nil
	}
	return true, pending.Err
}
