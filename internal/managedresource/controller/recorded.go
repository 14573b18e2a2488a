package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// inSyncWith reports whether an object is known to be in sync with a desired state.
func inSyncWith(recorded objects.Object, desired uint64) bool {
	return recorded.InSync && recorded.Desired == desired
}

// driftedFrom reports whether another writer has changed an object since it was compared with the same desired state:
// a write is then a repair, and not the roll-out of a new manifest.
func driftedFrom(recorded objects.Object, desired uint64) bool {
	return recorded.OutOfSync && !recorded.RetryPartial && recorded.Desired == desired
}

// createdFor returns the UID of the object that this process created for a ManagedResource; empty if there is none.
func (r *Reconciler) createdFor(owner objects.Owner, id objects.ID) types.UID {
	if recorded := r.Tracker.Get(id); recorded.CreatedFor == owner {
		return recorded.Created
	}
	return ""
}
