package controller

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

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

// goneSince reports whether an object was seen to be gone later than at a resource version. An object that left the
// filter of a watch looks the same, so that callers must not use it for an object whose end takes time.
func goneSince(recorded objects.Object, resourceVersion string) bool {
	if !recorded.Known || recorded.Present {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(recorded.ResourceVersion, resourceVersion)
	return err == nil && order > 0
}

// createdFor returns the UID of the object that this process created for a ManagedResource; empty if there is none.
func (r *Reconciler) createdFor(owner objects.Owner, id objects.ID) types.UID {
	if recorded := r.Tracker.Get(id); recorded.CreatedFor == owner {
		return recorded.Created
	}
	return ""
}
