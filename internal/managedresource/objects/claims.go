package objects

import (
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Created records that this process created the object for a ManagedResource: the proof of ownership, should the
// origin be removed from the object. A later write proves nothing, as a restored target may have the object as it was
// before.
//
// An answer that is older than the record of another object of that name must not replace what another run has created
// since. An answer that arrives after the object was given up does not claim it again.
func (l *Tracker) Created(owner Owner, s Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(s.ID)
	switch {
	case r == nil || r.disowned && r.created == s.UID:
	case r.uid == s.UID:
		r.created, r.disowned, r.creator = r.uid, false, l.owners[owner] // One copy in memory is enough.
	case r.created == "" || r.created != r.uid || !newer(r.resourceVersion, s.ResourceVersion):
		r.created, r.disowned, r.creator = s.UID, false, l.owners[owner]
	}
}

// TakenOver records that an object carries the origin of another ManagedResource than the one that it was created for:
// owner has it now.
func (l *Tracker) TakenOver(owner Owner, key ID, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil && r.created == uid {
		r.creator = o
	}
}

// DisownCreation records that the object with this UID is not ours any more, regardless of who created it. An object
// of the same name that this process has created since stays ours.
func (l *Tracker) DisownCreation(key ID, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil || r.created != uid && r.created != "" && r.created == r.uid {
		return
	}
	r.created, r.disowned, r.creator = uid, true, nil
}

// WriteOutcomeUnknown records that a request of ours may have changed or deleted the object, though no answer confirms
// it yet: the last comparison is void, and an event of the object is no drift.
func (l *Tracker) WriteOutcomeUnknown(key ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil {
		r.desired = 0
		r.unverifyLocked()
	}
}

// Writing records that requests are about to be sent that may change or create an object: a watch may report the
// change before the answer arrives, and subscribers are not notified of it until Written is called. Writing returns
// whether the requests repair drift: the object was compared with the same desired state before.
func (l *Tracker) Writing(key ID, desired uint64) (compared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil {
		return false
	}
	if r.writes < math.MaxUint8 {
		r.writes++
	}
	return r.desired == desired && (r.certainty == verified || r.certainty == stale && !r.retryPartial)
}

// Written ends the write that Writing began, after the answer was reported. It notifies the subscribers if the object
// is stale then.
func (l *Tracker) Written(key ID) {
	l.updateObject(key, func(r *record, notify *notices) {
		r.writes = max(r.writes, 1) - 1
		if r.untold && r.writes == 0 {
			r.tellLocked(notify)
		}
	})
}
