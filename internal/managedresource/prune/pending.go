package prune

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// OnlyPending reports whether a run that prunes objects would read none of them, and at least one still exists.
func (p *Pruner) OnlyPending(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) bool {
	r := &run{Options: p.Options, owner: owner}
	found := false
	for i := range refs {
		entry := objects.RefOf(&refs[i])
		if r.isCompleted(entry.ID) {
			continue
		}
		if delayed, _ := r.isDelayed(entry); !delayed {
			return false
		}
		found = true
	}
	return found
}

// isDelayed reports whether an object that is being deleted existed less than a minute ago and no watch has reported a
// change since. err is the reason why it could not be deleted.
func (r *run) isDelayed(entry objects.Ref) (delayed bool, err error) {
	pending := r.Tracker.Pending(r.owner, entry.ID)
	if pending.Done || !r.Clock.Now().Before(pending.Next) {
		return false, nil
	}
	recorded := r.Tracker.Get(entry.ID)
	another := pending.UID != "" && recorded.UID != "" && recorded.UID != pending.UID
	if recorded.Known && (!recorded.Present || another) && r.Watches.Covered(entry) {
		return false, nil
	}
	return true, pending.Err
}

const (
	// pendingRead is the interval between reads of an object that is terminating or cannot be deleted. Watches report
	// the end of an object. The reads find the end of objects without a watch, new annotations, and refusals whose
	// cause is gone.
	pendingRead = time.Minute
	// pendingTries is the number of runs in a row that retry a failed deletion, or expired finalizers, before
	// pendingRead applies: most errors last only seconds.
	pendingTries = 3
)

// triedAt sets when the object of a pending deletion is tried again.
func triedAt(p objects.PendingDeletion, now time.Time) objects.PendingDeletion {
	p.Next = now
	if p.Tries++; p.Tries >= pendingTries {
		p.Next = now.Add(pendingRead)
	}
	return p
}

// deletionFailed records the reason why an object could not be deleted, or finalized.
func (r *run) deletionFailed(id objects.ID, err error) {
	pending := r.Tracker.Pending(r.owner, id)
	pending.Err, pending.Events, pending.Done = err, nil, false
	r.Tracker.SetPending(r.owner, id, triedAt(pending, r.Clock.Now()))
}

// deletionCompleted records that an object needs no more work, because it is gone or stays; before is its revision
// before it was read. While other objects are pending, it is read again once a minute or after a report about it, and
// a last time before the run completes.
func (r *run) deletionCompleted(id objects.ID, before objects.Revision) {
	r.Tracker.SetPending(r.owner, id,
		objects.PendingDeletion{Done: true, Revision: before, Next: r.Clock.Now().Add(pendingRead)})
}

// isCompleted reports whether an object needed no more work less than a minute ago, and no watch has reported a
// change since.
func (r *run) isCompleted(id objects.ID) bool {
	p := r.Tracker.Pending(r.owner, id)
	return p.Done && r.Clock.Now().Before(p.Next) && p.Revision == r.Tracker.Get(id).Revision
}

// isTerminating reports whether an object was terminating when a run of a ManagedResource read it last.
func (r *run) isTerminating(id objects.ID) bool {
	return r.Tracker.Pending(r.owner, id).UID != ""
}

// ForgetDeletions forgets the pending deletions of objects.
func (p *Pruner) ForgetDeletions(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) {
	for i := range refs {
		p.Tracker.SetPending(owner, objects.IDOfEntry(&refs[i]), objects.PendingDeletion{})
	}
}

// retryDeletions makes the pending deletions due, as if they had not been tried.
func (r *run) retryDeletions() {
	for id := range r.byID {
		pending := r.Tracker.Pending(r.owner, id)
		pending.Next, pending.Tries = time.Time{}, 0
		r.Tracker.SetPending(r.owner, id, pending)
	}
}

// noteTerminating records an object that was read and is terminating; it schedules the removal of its finalizers, if
// that is configured (MRX-9).
func (r *run) noteTerminating(id objects.ID, live *unstructured.Unstructured) {
	now := r.Clock.Now()
	pending := objects.PendingDeletion{UID: live.GetUID(), Next: now.Add(pendingRead), Holds: holdsOf(live)}
	if before := r.Tracker.Pending(r.owner, id); before.UID == pending.UID || before.UID == "" {
		pending.Tries = before.Tries
	}
	if after, err := finalizeAfter(live); err == nil && after != 0 {
		due := live.GetDeletionTimestamp().Add(after)
		switch {
		case !due.After(now):
			pending = triedAt(pending, now)
		case due.Before(pending.Next):
			pending.Next = due
		}
	}
	r.Tracker.SetPending(r.owner, id, pending)
}

// notTerminating records that the object that was read is not terminating: a record of a terminating one is about an
// earlier object.
func (r *run) notTerminating(id objects.ID) {
	if r.isTerminating(id) {
		r.Tracker.SetPending(r.owner, id, objects.PendingDeletion{})
	}
}
