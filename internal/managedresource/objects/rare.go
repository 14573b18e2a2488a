package objects

import (
	"slices"
	"time"
)

// rare has the fields that few records use at a time. The other records need eight bytes for the pointer to it.
//
// Invariant: no record has a rare part with only zero fields, and the tracker's set of rare records has exactly the
// records with a rare part.
type rare struct {
	repairs repairs
	// deleting are the ManagedResources whose runs have sent a deletion of the object, for good or to create it anew:
	// the end of the object is then no drift, and its creation is not delayed. The list is emptied when the object is
	// found in sync. A ManagedResource is removed when its deletion was refused, and when its claim ends.
	deleting []*ownerRecord
	// pending are the pending deletions of the object.
	pending []pendingDeletion
	noop    NoopWrite
	// partial is the time to write the object again, if the API server kept only a part of it when it was last
	// verified; zero otherwise, and while retryPartial is set.
	partial  time.Time
	unlisted unlisted
	// hold is the last observed digest of the annotations that exempt the object from repair.
	hold uint32
}

func (x *rare) isZero() bool {
	return x.repairs == repairs{} && len(x.deleting) == 0 && len(x.pending) == 0 && x.noop == NoopWrite{} && x.hold == 0 &&
		x.unlisted == unlisted{} && x.partial.IsZero()
}

// unlisted is a list during which the object was tracked, and which lacked it: its version, and the number of the check
// that its end requested.
type unlisted struct {
	version   string
	requested uint16
}

// answersLocked reports whether a response is to the latest requested check. The end of a list that lacked an object
// which was just tracked requests one; a later version than that of the list needs none, because the watch that
// follows the list reports every change of it.
func (r *record) answersLocked(s Observation) bool {
	if s.Since.Requested == r.requested {
		return true
	}
	return r.rare != nil && r.rare.unlisted.requested == r.requested && s.Since.Requested+1 == r.requested &&
		newer(s.ResourceVersion, r.rare.unlisted.version)
}

// rareLocked returns the rare part of a record, and creates it if necessary.
func (t *table) rareLocked(r *record) *rare {
	if r.rare == nil {
		r.rare = &rare{}
		t.rares[r] = struct{}{}
	}
	return r.rare
}

// completeRareLocked removes the rare part if all of its fields are zero.
func (t *table) completeRareLocked(r *record) {
	if r.rare != nil && r.rare.isZero() {
		r.rare = nil
		delete(t.rares, r)
	}
}

// Sweep removes expired state of all objects: repairs without recent changes, and no-op writes that may be tried
// again. It marks objects of which the API server kept only a part as out of sync when their time has come, unless
// they are being written. It notifies no subscriber, because the caller then checks the objects that are out of sync.
func (rep *Repairs) Sweep(now time.Time) {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	for r := range rep.rares {
		if due := r.rare.partial; !due.IsZero() && r.writes == 0 && !due.After(now) {
			rep.retryLocked(r)
		}
		if r.rare == nil {
			continue
		}
		if rep.isQuietLocked(&r.rare.repairs, now) {
			r.rare.repairs = repairs{}
		}
		if !now.Before(r.rare.noop.Until) {
			r.rare.noop = NoopWrite{}
		}
		rep.completeRareLocked(r)
	}
}

// Write has digests of the live object and of the merged object that replaces it. Neither includes the status, which
// may change meanwhile.
type Write struct{ Live, Merged uint64 }

// NoopWrite is a write that the API server accepted without a change, and the time until which it is not repeated.
// API servers drop fields of disabled features, and write some values in an unknown form (MRB-8).
type NoopWrite struct {
	Write
	Until time.Time
}

func (t *table) endDeletingLocked(r *record, o *ownerRecord) {
	if r.rare == nil {
		return
	}
	r.rare.deleting = slices.DeleteFunc(r.rare.deleting, func(other *ownerRecord) bool { return other == o })
	t.completeRareLocked(r)
}

// claimEndsLocked removes the data about an object for a ManagedResource that no longer has it.
func (t *table) claimEndsLocked(r *record, o *ownerRecord) {
	if o.run != nil {
		delete(o.run.applies, r)
		delete(o.run.releases, r)
	}
	if r.rare == nil {
		return
	}
	t.endPendingLocked(r, o)
	t.endDeletingLocked(r, o)
}
