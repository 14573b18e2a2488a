package objects

import (
	"math"
	"slices"

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
		r.verified, r.desired = false, 0
	}
}

// Drifted says whether an object was changed by somebody else since it was compared with the same desired state: what is to be
// done about it is a repair, and not the roll-out of a new manifest.
func (l *Tracker) Drifted(key Key, desired uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	return r != nil && r.suspect && !r.retryPartial && r.desired == desired
}

// LeftTo says that another ManagedResource keeps an object that a ManagedResource has, too: that one looks at it from now on, at once if
// it is in doubt. If it does not have the object on record, the next change raises a doubt anew.
func (l *Tracker) LeftTo(keeper, owner Owner, key Key) { l.left(keeper, owner, key, Observation{}) }

// Left is LeftTo by a ManagedResource that has looked at the object: what was seen since is not taken back.
func (l *Tracker) Left(keeper, owner Owner, seen Observation) { l.left(keeper, owner, seen.Key, seen) }

func (l *Tracker) left(keeper, owner Owner, key Key, seen Observation) {
	var told notices
	l.mu.Lock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil {
		r.leaveLocked(l.owners[keeper], o, seen, &told)
	}
	l.mu.Unlock()
	told.send(l)
}

// Pass tells that a ManagedResource cannot look at objects at present, such as because a Secret of it is missing. Those in doubt
// that others have, too, are left to them: each is asked once until one of them has verified the object, so that some that all
// cannot do not wake each other for ever.
func (l *Tracker) Pass(owner Owner, unable func(Key) bool) {
	var told notices
	l.mu.Lock()
	if o := l.owners[owner]; o != nil {
		for r := range o.dirty {
			if unable(r.key()) {
				r.passLocked(o, &told)
			}
		}
	}
	l.mu.Unlock()
	told.send(l)
}

// PassOn tells that a ManagedResource does not put an object right, after another one has said that it cannot look at it, or if the keeper is not on
// record and there is somebody left to be asked; else it does nothing, and returns false.
func (l *Tracker) PassOn(owner, keeper Owner, key Key) bool {
	var told notices
	l.mu.Lock()
	passed := false
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil {
		if absent := !slices.Contains(r.owners, l.owners[keeper]); absent || r.passed > 0 {
			passed = r.passLocked(o, &told) || !absent
		}
	}
	l.mu.Unlock()
	told.send(l)
	return passed
}

// Waits notes that a ManagedResource is going to look at an object in its time: it is none of those that cannot, so that the doubt stays its own when
// another one that has the object looks meanwhile, and leaves it.
func (l *Tracker) Waits(owner Owner, key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil {
		r.canLocked(o)
	}
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
	return r.desired == desired && (r.verified || r.suspect && !r.retryPartial)
}

// Written ends what Writing began, after the answer was reported. An object that is in doubt then is told of.
func (l *Tracker) Written(key Key) {
	var told notices
	l.mu.Lock()
	if r := l.findLocked(key); r != nil {
		r.writes = max(r.writes, 1) - 1
		if r.untold && r.writes == 0 {
			r.tellLocked(&told)
		}
	}
	l.mu.Unlock()
	told.send(l)
}
