package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// stillHeld reports whether the only work left is to await the objects that the last run deletes: at least one still
// exists.
func (r *Reconciler) stillHeld(mr *resourcesv1alpha1.ManagedResource, pending *lifecycle.Pending) bool {
	owner := steps.OwnerOf(mr)
	if *r.Config.ApplyWhileDeletionPending {
		deleted := sets.New(idsOf(pending.Objects)...)
		if !deleted.HasAll(r.Tracker.Progress(owner).OutOfSync...) {
			return false // Drift of the others is repaired meanwhile.
		}
	}
	return pending.IsCurrent(mr, r.Clock.Now()) && r.arePutOff(owner, pending.Objects)
}

// arePutOff reports whether a run would read none of the objects, and at least one still exists.
func (r *Reconciler) arePutOff(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) bool {
	found := false
	for i := range refs {
		entry := objects.RefOf(&refs[i])
		if r.isCompleted(owner, entry.ID) {
			continue
		}
		if held, _ := r.isHeld(owner, entry); !held {
			return false
		}
		found = true
	}
	return found
}

// isHeld reports whether an object that is being deleted existed less than a minute ago and no watch has reported a
// change since. err is the reason why it could not be deleted.
func (r *Reconciler) isHeld(owner objects.Owner, entry objects.Ref) (held bool, err error) {
	pending := r.Tracker.Pending(owner, entry.ID)
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
	// its end; the reads find the end of objects without a watch, new annotations, and the end of the cause of a
	// refusal.
	pendingRead = time.Minute
	// pendingTries is the number of runs in a row that retry a failed deletion, or expired finalizers, before that
	// interval applies: most faults pass within seconds.
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
func (p *pruner) deletionFailed(id objects.ID, err error) {
	pending := p.Tracker.Pending(p.owner, id)
	pending.Err, pending.Events, pending.Done = err, nil, false
	p.Tracker.SetPending(p.owner, id, triedAt(pending, p.Clock.Now()))
}

// deletionCompleted records that no work remained for an object that was read after its revision was recorded: it is
// gone, or stays. While other objects hold up the run, it is read once a minute, or after a report about it, and once
// more before the run relies on it.
func (p *pruner) deletionCompleted(id objects.ID, before objects.Revision) {
	p.Tracker.SetPending(p.owner, id,
		objects.PendingDeletion{Done: true, Revision: before, Next: p.Clock.Now().Add(pendingRead)})
}

// isCompleted reports whether no work remained for an object less than a minute ago, and nothing was reported about it
// since.
func (r *Reconciler) isCompleted(owner objects.Owner, id objects.ID) bool {
	p := r.Tracker.Pending(owner, id)
	return p.Done && r.Clock.Now().Before(p.Next) && p.Revision == r.Tracker.Get(id).Revision
}

// isTerminating reports whether an object was terminating when a run of a ManagedResource read it last.
func (r *Reconciler) isTerminating(owner objects.Owner, id objects.ID) bool {
	return r.Tracker.Pending(owner, id).UID != ""
}

// forgetDeletions forgets the pending deletions of objects.
func (r *Reconciler) forgetDeletions(mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference) {
	for _, id := range idsOf(refs) {
		r.Tracker.SetPending(steps.OwnerOf(mr), id, objects.PendingDeletion{})
	}
}

// retryDeletions makes the pending deletions of objects due, as if they had not been tried.
func (r *Reconciler) retryDeletions(mr *resourcesv1alpha1.ManagedResource, refs []resourcesv1alpha1.ObjectReference) {
	owner := steps.OwnerOf(mr)
	for _, id := range idsOf(refs) {
		pending := r.Tracker.Pending(owner, id)
		pending.Next, pending.Tries = time.Time{}, 0
		r.Tracker.SetPending(owner, id, pending)
	}
}

// noteTerminating records an object that was read and is terminating; its finalizers may be removed after a time
// (MRX-9).
func (p *pruner) noteTerminating(id objects.ID, live *unstructured.Unstructured) {
	now := p.Clock.Now()
	pending := objects.PendingDeletion{UID: live.GetUID(), Next: now.Add(pendingRead), Holds: holdsOf(live)}
	if before := p.Tracker.Pending(p.owner, id); before.UID == pending.UID || before.UID == "" {
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
	p.Tracker.SetPending(p.owner, id, pending)
}

// notTerminating records that an object was read, and is not terminating: the record of a terminating one is about
// another.
func (p *pruner) notTerminating(id objects.ID) {
	if p.isTerminating(p.owner, id) {
		p.Tracker.SetPending(p.owner, id, objects.PendingDeletion{})
	}
}
