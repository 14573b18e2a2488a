package objects

import (
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Created notes that this process created the object for a ManagedResource: the proof that it is that one's, should its origin be taken away. To
// have written to it proves nothing: a restored target may have it as it was before. An answer that is older than what is known of another
// object of that name is about one that is gone, and must not take the place of what another run has created since; nor does an answer that comes
// after the object was given up take that back.
func (l *Tracker) Created(owner Owner, s Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(s.Key)
	switch {
	case r == nil || r.disowned && r.created == s.UID:
	case r.uid == s.UID:
		r.created, r.disowned, r.creator = r.uid, false, l.owners[owner] // One copy in memory is enough.
	case r.created == "" || r.created != r.uid || !newer(r.resourceVersion, s.ResourceVersion):
		r.created, r.disowned, r.creator = s.UID, false, l.owners[owner]
	}
}

// TakenOver notes that an object carries the origin of another ManagedResource than the one that it was created for: it is that one's.
func (l *Tracker) TakenOver(owner Owner, key Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil && r.created == uid {
		r.creator = o
	}
}

// DisownCreation notes that the object with this UID is not ours any more, whoever created it. Another one that was created since by its name is.
func (l *Tracker) DisownCreation(key Key, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil || r.created != uid && r.created != "" && r.created == r.uid {
		return
	}
	r.created, r.disowned, r.creator = uid, true, nil
}

// IsOurs says whether this process created the object with this UID for any ManagedResource, and nobody has given it up.
func (l *Tracker) IsOurs(key Key, uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	return r != nil && uid != "" && r.created == uid && !r.disowned
}

// CreatedFor is the UID of the object that this process created, if it is the one of this ManagedResource; empty if it is not.
func (l *Tracker) CreatedFor(owner Owner, key Key) types.UID {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil || r.disowned || r.creator == nil || r.creator.owner != owner {
		return ""
	}
	return r.created
}

// WriteOutcomeUnknown notes that a request of ours may have changed the object, or ended it, though no answer says so yet: what it was compared with says nothing
// any more, and what a watch tells of it is no drift.
func (l *Tracker) WriteOutcomeUnknown(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil {
		r.desired = 0
		r.unverifyLocked()
	}
}

// Drifted says whether an object was changed by somebody else since it was compared with the same desired state: what is to be
// done about it is a repair, and not the roll-out of a new manifest.
func (l *Tracker) Drifted(key Key, desired uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	return r != nil && r.certainty == suspect && !r.retryPartial && r.desired == desired
}

// Writing notes that requests are about to be sent that may change an object, or create it: a watch may tell of that before the answer
// does, and nobody is told of it until Written is called. It reports whether what they will change is drift: what was compared with the
// same desired state, and is to be so no more.
func (l *Tracker) Writing(key Key, desired uint64) (compared bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil {
		return false
	}
	if r.writes < math.MaxUint8 {
		r.writes++
	}
	return r.desired == desired && (r.certainty == verified || r.certainty == suspect && !r.retryPartial)
}

// Written ends what Writing began, after the answer was reported. An object that is in doubt then is told of.
func (l *Tracker) Written(key Key) {
	l.updateObject(key, func(r *record, told *notices) {
		r.writes = max(r.writes, 1) - 1
		if r.untold && r.writes == 0 {
			r.tellLocked(told)
		}
	})
}
