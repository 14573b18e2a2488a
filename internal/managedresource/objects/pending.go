package objects

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// pendingRetry is how often an object is read that is terminating or can't be deleted: the watches report its end, and
	// a read a minute is for objects that they do not cover, for annotations, and for the cause that refused its deletion.
	pendingRetry = time.Minute
	// pendingTries is how often a deletion that failed, or finalizers whose time is up, are tried with each run before
	// that: most faults pass within seconds.
	pendingTries = 3
)

// pendingDeletion is what a run of a ManagedResource found about an object that it had to delete: the object was
// terminating, it could not be deleted, or no work remained. Waiting for the object then costs next to nothing.
//
// Invariant: the pendingDeletion only saves requests, for a minute at most. It never proves that an object is gone, and
// it is about the object with that UID. It ends with the claim of the ManagedResource, when the run need not delete the
// object any more, and when a user requests a full run.
type pendingDeletion struct {
	owner *ownerRecord
	// uid is that of a terminating object, else "".
	uid types.UID
	// next is when it may be looked at again; tries counts the times that more than waiting was tried.
	next  time.Time
	tries int
	// err is why it could not be deleted or finalized, nil if it only takes time.
	err error
	// holds are the finalizers and conditions that held it when it was read.
	holds string
	// events is what its Events said, nil if they were not read.
	events *string
	// done is true if nothing remained to be done about it when it was read, and mark what was on record before.
	done     bool
	revision Revision
}

// triedAt sets when the object is tried again.
func (p *pendingDeletion) triedAt(now time.Time) {
	if p.tries++; p.tries < pendingTries {
		p.next = now
	} else {
		p.next = now.Add(pendingRetry)
	}
}

// pendingLocked returns what a run of a ManagedResource found of an object, nil if nothing is known.
func (l *Tracker) pendingLocked(owner Owner, key Key) *pendingDeletion {
	r, o := l.findLocked(key), l.owners[owner]
	if r == nil || r.rare == nil || o == nil {
		return nil
	}
	for i := range r.rare.pending {
		if r.rare.pending[i].owner == o {
			return &r.rare.pending[i]
		}
	}
	return nil
}

// setPendingLocked replaces what is known; it is dropped for an object that the ManagedResource does not have.
func (l *Tracker) setPendingLocked(owner Owner, key Key, p pendingDeletion) *pendingDeletion {
	if known := l.pendingLocked(owner, key); known != nil {
		p.owner = known.owner
		*known = p
		return known
	}
	r, o := l.findLocked(key), l.owners[owner]
	if r == nil || o == nil {
		return &p
	}
	p.owner = o
	x := l.rareLocked(r)
	x.pending = append(x.pending, p)
	return &x.pending[len(x.pending)-1]
}

func (l *Tracker) endPendingLocked(r *record, o *ownerRecord) {
	if r.rare == nil {
		return
	}
	r.rare.pending = slices.DeleteFunc(r.rare.pending, func(p pendingDeletion) bool { return p.owner == o })
	l.completeRareLocked(r)
}

// Terminating notes that a run of a ManagedResource read an object that is terminating, and what holds it. due is when
// its finalizers may be removed (MRX-9), zero for never.
func (l *Tracker) Terminating(owner Owner, key Key, now time.Time, uid types.UID, holds string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := pendingDeletion{uid: uid, next: now.Add(pendingRetry), holds: holds}
	if before := l.pendingLocked(owner, key); before != nil && (before.uid == uid || before.uid == "") {
		p.tries = before.tries
	}
	switch {
	case due.IsZero():
	case !due.After(now):
		p.triedAt(now)
	case due.Before(p.next):
		p.next = due
	}
	l.setPendingLocked(owner, key, p)
}

// DeletionFailed notes why an object could not be deleted, or finalized.
func (l *Tracker) DeletionFailed(owner Owner, key Key, now time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	if p == nil {
		p = l.setPendingLocked(owner, key, pendingDeletion{})
	}
	p.err, p.events, p.done = err, nil, false
	p.triedAt(now)
}

// DeletionCompleted notes that nothing remained to be done about an object that was read: it is gone, or stays. While
// others hold up the run it is read once a minute, or when there is news of it; before anything is concluded from that,
// it is read once more.
func (l *Tracker) DeletionCompleted(owner Owner, key Key, now time.Time, before Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setPendingLocked(owner, key, pendingDeletion{done: true, revision: before, next: now.Add(pendingRetry)})
}

// IsDeletionCompleted reports whether nothing remained to be done about an object less than a minute ago, and nothing was
// reported of it since.
func (l *Tracker) IsDeletionCompleted(owner Owner, key Key, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	return p != nil && p.done && now.Before(p.next) && p.revision == l.findLocked(key).revision()
}

// PendingDeletion is what is known of an object whose deletion is pending, and that need not be looked at yet.
type PendingDeletion struct {
	// UID is that of the object if it was terminating, else "".
	UID types.UID
	// Err is why it could not be deleted, nil if it only takes time.
	Err error
}

// DeletionPends returns what is known of an object that need not be looked at again yet; false if it is to be looked
// at.
func (l *Tracker) DeletionPends(owner Owner, key Key, now time.Time) (PendingDeletion, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	if p == nil || p.done || !now.Before(p.next) {
		return PendingDeletion{}, false
	}
	return PendingDeletion{p.uid, p.err}, true
}

// IsTerminating reports whether an object was terminating when a run of a ManagedResource read it last.
func (l *Tracker) IsTerminating(owner Owner, key Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	return p != nil && p.uid != ""
}

// NotTerminating notes that an object was read, and is not terminating: what is known of one that was is about another.
func (l *Tracker) NotTerminating(owner Owner, key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil && p.uid != "" {
		l.endPendingLocked(l.findLocked(key), p.owner)
	}
}

// DeletionAccepted notes that a deletion was accepted: what held the object before says nothing any more.
func (l *Tracker) DeletionAccepted(owner Owner, key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil {
		l.endPendingLocked(r, l.owners[owner])
	}
}

// Holds returns the finalizers and conditions that held an object when it was read last.
func (l *Tracker) Holds(owner Owner, key Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil {
		return p.holds
	}
	return ""
}

// EventsOf returns what the Events of an object said whose deletion is pending; false if they were not read since it
// was noted.
func (l *Tracker) EventsOf(owner Owner, key Key) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil && p.events != nil {
		return *p.events, true
	}
	return "", false
}

// SetEvents notes what the Events of an object said.
func (l *Tracker) SetEvents(owner Owner, key Key, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil {
		p.events = &text
	}
}

// RetryDeletions marks all pending deletions of a ManagedResource to be tried again.
func (l *Tracker) RetryDeletions(owner Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.pendingOfLocked(owner) {
		p := l.pendingLocked(owner, r.key())
		p.next, p.tries = time.Time{}, 0
	}
}

// ForgetDeletions forgets the pending deletions of a ManagedResource, except those of the given objects.
func (l *Tracker) ForgetDeletions(owner Owner, except ...Key) {
	keep := make(map[Key]struct{}, len(except))
	for _, key := range except {
		keep[key] = struct{}{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.pendingOfLocked(owner) {
		if _, kept := keep[r.key()]; !kept {
			l.endPendingLocked(r, l.owners[owner])
		}
	}
}

// pendingOfLocked are the objects of which a run of a ManagedResource found something. The search is in proportion to
// its own objects.
func (l *Tracker) pendingOfLocked(owner Owner) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		o := l.owners[owner]
		if o == nil {
			return
		}
		for _, r := range o.records {
			if r.rare != nil && slices.ContainsFunc(r.rare.pending, func(p pendingDeletion) bool { return p.owner == o }) && !yield(r) {
				return
			}
		}
	}
}
