package objects

import "k8s.io/apimachinery/pkg/types"

// ownLocked records the ManagedResource for which an object was created, or which repairs it now. Only the creation
// proves ownership, should the origin be removed from the object: a restored target may have the object as it was
// before a later write.
func (l *Tracker) ownLocked(r *record, o *ownerRecord, s Observation) {
	switch {
	case s.Created:
		l.createdLocked(r, o, s)
	case !s.CreateOnly && o != nil && r.created == s.UID:
		r.creator = o
	}
}

// createdLocked records that this process created an object for a ManagedResource. An answer that is older than the
// record of another object of that name must not replace what another run has created since. An answer that arrives
// after the object was given up does not claim it again.
func (l *Tracker) createdLocked(r *record, o *ownerRecord, s Observation) {
	switch {
	case r.disowned && r.created == s.UID:
	case r.uid == s.UID:
		r.created, r.disowned, r.creator = r.uid, false, o // One copy in memory is enough.
	case r.created == "" || r.created != r.uid || !newer(r.resourceVersion, s.ResourceVersion):
		r.created, r.disowned, r.creator = s.UID, false, o
	}
}

// TakenOver records that an object carries the origin of another ManagedResource than the one that it was created for:
// owner has it now. Without owner the object with this UID is not ours any more, regardless of who created it; an
// object of the same name that this process has created since stays ours.
func (l *Tracker) TakenOver(owner Owner, key ID, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, o := l.findLocked(key), l.owners[owner]
	switch {
	case r == nil:
	case owner == Owner{}:
		if r.created == uid || r.created == "" || r.created != r.uid {
			r.created, r.disowned, r.creator = uid, true, nil
		}
	case o != nil && r.created == uid:
		r.creator = o
	}
}
