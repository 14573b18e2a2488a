package objects

import (
	"slices"
	"time"
)

// rare has the fields that few records need at a time. It is behind one pointer, which costs the others eight bytes.
//
// Invariant: a record has no rare part whose fields are all zero, and the tracker's set of rare records has exactly
// the records with a rare part.
type rare struct {
	repairs repairs
	// deleting are the ManagedResources whose runs have sent a deletion of the object, to create it anew or for good: the
	// end of the object is no drift, and nothing delays its creation. The list is emptied when the object was found in
	// sync. A ManagedResource leaves the list when its deletion was refused, and when its claim ends.
	deleting []*ownerRecord
	// pending are the findings of runs that were to delete the object.
	pending []pendingDeletion
	noop    NoopWrite
	// partial is the time to write the object once more, of which the API server kept only a part when it was last
	// verified; zero for any other, and while it has retryPartial.
	partial time.Time
	// hold is a digest of the annotations that exempt the object from repair, as they were seen last.
	hold uint32
}

func (x *rare) isZero() bool {
	return x.repairs == repairs{} && len(x.deleting) == 0 && len(x.pending) == 0 && x.noop == NoopWrite{} && x.hold == 0 &&
		x.partial.IsZero()
}

// rareLocked returns the rare part of a record, made if there is none.
func (t *table) rareLocked(r *record) *rare {
	if r.rare == nil {
		r.rare = &rare{}
		t.rares[r] = struct{}{}
	}
	return r.rare
}

// completeRareLocked takes the rare part away once nothing is in it.
func (t *table) completeRareLocked(r *record) {
	if r.rare != nil && r.rare.isZero() {
		r.rare = nil
		delete(t.rares, r)
	}
}

// Sweep forgets expired state of all objects: repairs that are quiet, and no-op writes that are due to be tried again.
// It marks objects of which the API server kept only a part as out of sync, once their time has come, except those that
// are being written. It notifies no subscriber: the caller checks objects that are out of sync next.
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

// Write has digests of the live object and of the merged object that replaces it. The status is part of neither, so
// that it may change meanwhile.
type Write struct{ Live, Merged uint64 }

// NoopWrite is a write that the API server accepted without a change, and the time until which it is not repeated. API
// servers drop fields whose features are switched off, and spell some values in a way that no table here knows
// (MRB-8).
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

// claimEndsLocked removes the entries about an object for a ManagedResource that no longer has it.
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
