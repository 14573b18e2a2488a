package objects

import "k8s.io/apimachinery/pkg/types"

// creation is the proof that this process created an object, or that it gave the object up.
type creation struct {
	uid types.UID
	// givenUp is true if the object with that UID is not ours any more: the answer to its creation may come later.
	givenUp bool
	// owner is the ManagedResource that the object was created for, or that has taken it over since: only that one may
	// claim the object as its own.
	owner *ownerRecord
}

// isOf reports whether it is about the object with a UID.
func (c *creation) isOf(uid types.UID) bool { return c != nil && c.uid == uid }

// ownLocked records the ManagedResource for which an object was created, or which repairs it now. Only the creation
// proves ownership, should the origin be removed from the object: a restored target may have the object as it was
// before a later write.
func (r *record) ownLocked(o *ownerRecord, s Observation) {
	switch {
	case s.Created:
		r.createdLocked(o, s)
	case !s.CreateOnly && o != nil && r.creation.isOf(s.UID):
		r.creation.owner = o
	}
}

// createdLocked records that this process created an object for a ManagedResource. An answer that is older than the
// record of another object of that name must not replace what another run has created since. An answer that arrives
// after the object was given up does not claim it again.
func (r *record) createdLocked(o *ownerRecord, s Observation) {
	switch {
	case r.creation.isOf(s.UID) && r.creation.givenUp:
	case r.uid == s.UID:
		r.creation = &creation{uid: r.uid, owner: o} // One copy of the UID in memory is enough.
	case !r.creation.isOf(r.uid) || !newer(r.resourceVersion, s.ResourceVersion):
		r.creation = &creation{uid: s.UID, owner: o}
	}
}

// TakenOver records that an object carries the origin of another ManagedResource than the one that it was created for:
// owner has it now. Without owner the object with this UID is not ours any more, regardless of who created it; an
// object of the same name that this process has created since stays ours.
func (obs *Observations) TakenOver(owner Owner, key ID, uid types.UID) {
	obs.mu.Lock()
	defer obs.mu.Unlock()
	r, o := obs.findLocked(key), obs.owners[owner]
	switch {
	case r == nil:
	case owner == Owner{}:
		if r.creation.isOf(uid) || !r.creation.isOf(r.uid) {
			r.creation = &creation{uid: uid, givenUp: true}
		}
	case o != nil && r.creation.isOf(uid):
		r.creation.owner = o
	}
}
