package objects

import "k8s.io/apimachinery/pkg/types"

// creation records that this process created an object, or that the object was given up.
type creation struct {
	uid types.UID
	// givenUp is true if the object with this UID is not ours any more. The response to its creation may arrive
	// later.
	givenUp bool
	// owner is the ManagedResource for which the object was created, or that has taken it over since. No other may
	// claim the object as its own.
	owner *ownerRecord
}

// isOf reports whether the record is about the object with a UID.
func (c *creation) isOf(uid types.UID) bool { return c != nil && c.uid == uid }

// ownLocked records the ManagedResource for which an object was created, or which repairs it now. The creation is the
// only proof of ownership if the origin was removed from the object, or if a restored target has the object as it was
// before a later write.
func (r *record) ownLocked(o *ownerRecord, s Observation) {
	switch {
	case s.Created:
		r.createdLocked(o, s)
	case !s.CreateOnly && o != nil && r.creation.isOf(s.UID):
		r.creation.owner = o
	}
}

// createdLocked records that this process created an object for a ManagedResource. A late response must not replace
// the record of a newer object with the same name, and does not reclaim an object that was given up.
func (r *record) createdLocked(o *ownerRecord, s Observation) {
	switch {
	case r.creation.isOf(s.UID) && r.creation.givenUp:
	case r.uid == s.UID:
		r.creation = &creation{uid: r.uid, owner: o} // The two UIDs share one string in memory.
	case !r.creation.isOf(r.uid) || !newer(r.resourceVersion, s.ResourceVersion):
		r.creation = &creation{uid: s.UID, owner: o}
	}
}

// TakenOver records that an object has the origin of another ManagedResource than the one for which it was created:
// owner has it now. Without owner, the object with this UID is not ours any more, regardless of its creator; an
// object with the same name that this process has created since stays ours.
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
