package objects

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// pendingRetry is the interval between reads of an object that is terminating or cannot be deleted. Watches report
	// its end; the reads find the end of objects without a watch, new annotations, and the end of the cause of a
	// refusal.
	pendingRetry = time.Minute
	// pendingTries is the number of runs in a row that retry a failed deletion, or expired finalizers, before that
	// interval applies: most faults pass within seconds.
	pendingTries = 3
)

// pendingDeletion is the finding of a run about an object that it had to delete: the object was terminating, it could
// not be deleted, or no work remained. Waiting for the object then costs next to nothing.
//
// Invariant: a pendingDeletion only saves requests, for a minute at most. It never proves that an object is gone, and
// is valid only for the object with that UID. It ends with the claim of the ManagedResource, when the run need not
// delete the object any more, and when a user requests a full run.
type pendingDeletion struct {
	owner *ownerRecord
	// uid is the UID of a terminating object, else empty.
	uid types.UID
	// next is the earliest time of the next check; tries counts the attempts to do more than wait.
	next  time.Time
	tries int
	// err is the reason why the object could not be deleted or finalized, nil if it only takes time.
	err error
	// holds are the finalizers and conditions that held it when it was read.
	holds string
	// events is the text of its Events, nil if they were not read.
	events *string
	// done is true if no work remained when the object was read; revision was on record before that read.
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

// pendingLocked returns the pendingDeletion of an object for a ManagedResource, nil if there is none.
func (l *Tracker) pendingLocked(owner Owner, key ID) *pendingDeletion {
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

// setPendingLocked replaces the pendingDeletion of an object, unless the ManagedResource does not have the object.
func (l *Tracker) setPendingLocked(owner Owner, key ID, p pendingDeletion) *pendingDeletion {
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

// Terminating records that a run of a ManagedResource read an object that is terminating, and its holds. due is the
// time at which its finalizers may be removed (MRX-9), zero for never.
func (l *Tracker) Terminating(owner Owner, key ID, now time.Time, uid types.UID, holds string, due time.Time) {
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

// DeletionFailed records the reason why an object could not be deleted, or finalized.
func (l *Tracker) DeletionFailed(owner Owner, key ID, now time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	if p == nil {
		p = l.setPendingLocked(owner, key, pendingDeletion{})
	}
	p.err, p.events, p.done = err, nil, false
	p.triedAt(now)
}

// DeletionCompleted records that no work remained for an object that was read: it is gone, or stays. While other
// objects hold up the run, it is read once a minute, or after a report about it, and once more before the run relies
// on it.
func (l *Tracker) DeletionCompleted(owner Owner, key ID, now time.Time, before Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setPendingLocked(owner, key, pendingDeletion{done: true, revision: before, next: now.Add(pendingRetry)})
}

// IsDeletionCompleted reports whether no work remained for an object less than a minute ago, and nothing was reported
// about it since.
func (l *Tracker) IsDeletionCompleted(owner Owner, key ID, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	return p != nil && p.done && now.Before(p.next) && p.revision == l.findLocked(key).revision()
}

// PendingDeletion is the pending deletion of an object that need not be checked yet.
type PendingDeletion struct {
	// UID is the UID of the object if it was terminating, else empty.
	UID types.UID
	// Err is the reason why the object could not be deleted, nil if it only takes time.
	Err error
}

// DeletionPends returns the pending deletion of an object that need not be checked yet; false if it must be.
func (l *Tracker) DeletionPends(owner Owner, key ID, now time.Time) (PendingDeletion, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	if p == nil || p.done || !now.Before(p.next) {
		return PendingDeletion{}, false
	}
	return PendingDeletion{p.uid, p.err}, true
}

// IsTerminating reports whether an object was terminating when a run of a ManagedResource read it last.
func (l *Tracker) IsTerminating(owner Owner, key ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pendingLocked(owner, key)
	return p != nil && p.uid != ""
}

// NotTerminating records that an object was read, and is not terminating: the record of a terminating one is about
// another.
func (l *Tracker) NotTerminating(owner Owner, key ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil && p.uid != "" {
		l.endPendingLocked(l.findLocked(key), p.owner)
	}
}

// DeletionAccepted records that a deletion was accepted: earlier findings about the object are void.
func (l *Tracker) DeletionAccepted(owner Owner, key ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil {
		l.endPendingLocked(r, l.owners[owner])
	}
}

// Holds returns the finalizers and conditions that held an object when it was read last.
func (l *Tracker) Holds(owner Owner, key ID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil {
		return p.holds
	}
	return ""
}

// EventsOf returns the text of the Events of an object whose deletion is pending; false if they were not read since
// the deletion was recorded.
func (l *Tracker) EventsOf(owner Owner, key ID) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.pendingLocked(owner, key); p != nil && p.events != nil {
		return *p.events, true
	}
	return "", false
}

// SetEvents records the text of the Events of an object.
func (l *Tracker) SetEvents(owner Owner, key ID, text string) {
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
func (l *Tracker) ForgetDeletions(owner Owner, except ...ID) {
	keep := make(map[ID]struct{}, len(except))
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

// pendingOfLocked yields the objects with a pendingDeletion for a ManagedResource. The search is in proportion to its
// own objects.
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
