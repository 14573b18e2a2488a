package objects

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PendingDeletion is the finding of a run about an object that it had to delete: the object was terminating, could not
// be deleted, or needed no more work. It makes waiting for the object cheap.
//
// Invariant: a PendingDeletion only saves requests, until Next. It never proves that an object does not exist, and is
// valid only for the object with that UID. It ends with the claim of the ManagedResource, when the run need not
// delete the object any more, and when a user requests a full run.
type PendingDeletion struct {
	// UID is the UID of a terminating object, otherwise empty.
	UID types.UID
	// Next is the earliest time of the next check; Tries counts the attempts to do more than wait.
	Next  time.Time
	Tries int
	// Err is the reason why the object could not be deleted or finalized; nil if the deletion only takes time.
	Err error
	// Holds are the finalizers and conditions that blocked the deletion when the object was read.
	Holds string
	// Events is the text of the object's Events; nil if they were not read.
	Events *string
	// Done is true if no work remained when the object was read; Revision is the tracked revision before that read.
	Done     bool
	Revision Revision
}

// isZero reports whether there is no pending deletion.
func (p PendingDeletion) isZero() bool { return p.UID == "" && p.Err == nil && !p.Done }

type pendingDeletion struct {
	owner *ownerRecord
	PendingDeletion
}

// Pending returns the pending deletion of an object for a ManagedResource; zero if there is none.
func (c *Claims) Pending(owner Owner, id ID) PendingDeletion {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, o := c.findLocked(id), c.owners[owner]; r != nil && r.rare != nil {
		for _, p := range r.rare.pending {
			if p.owner == o {
				return p.PendingDeletion
			}
		}
	}
	return PendingDeletion{}
}

// SetPending replaces the pending deletion of an object, unless the ManagedResource does not have the object. A
// PendingDeletion without UID, error or Done removes it.
func (c *Claims) SetPending(owner Owner, id ID, p PendingDeletion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, o := c.findLocked(id), c.owners[owner]
	if r == nil || o == nil {
		return
	}
	c.endPendingLocked(r, o)
	if !p.isZero() {
		x := c.rareLocked(r)
		x.pending = append(x.pending, pendingDeletion{o, p})
	}
}

func (t *table) endPendingLocked(r *record, o *ownerRecord) {
	if r.rare == nil {
		return
	}
	r.rare.pending = slices.DeleteFunc(r.rare.pending, func(p pendingDeletion) bool { return p.owner == o })
	t.completeRareLocked(r)
}
