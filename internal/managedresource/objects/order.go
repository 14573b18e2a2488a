package objects

import (
	"math"
	"slices"
)

// The order of an object's owners decides which owner repairs the object. Claims list the objects that a run applies
// or drops, and end with the run; the order outlives runs, and so cannot be one of their flags:
//
//	[owners that cannot check it | owners to be asked | the owner that is notified]
//
// The last owner is notified of drift: it verified the object last. If it cannot check the object, it moves to the
// front, and the owner before it is notified. The first owners, as many as passed counts, were notified since the
// object was last verified, and could not check it. Once all were notified, the next change begins anew.

// Transfer makes next, another owner of an object, check the object from now on, at once if it is stale. If next does
// not have the object on record, a later change makes the object stale again. seen is the object as owner has read it:
// changes that were reported after that read are not taken back. It may have the ID only.
func (l *Tracker) Transfer(owner, next Owner, seen Observation) {
	l.updateObject(seen.ID, func(r *record, notify *notices) {
		if o := l.owners[owner]; o != nil {
			r.transferLocked(o, l.owners[next], seen, notify)
		}
	})
}

// PassAllOutOfSync records that a ManagedResource cannot check objects at present, for example because one of its
// Secrets is missing. It leaves its stale objects to their other owners: each owner is asked once until one of them
// has verified the object, so that owners which all cannot check it do not wake each other for ever.
func (l *Tracker) PassAllOutOfSync(owner Owner, unable func(ID) bool) {
	l.update(func(notify *notices) {
		if o := l.owners[owner]; o != nil {
			for r := range o.dirty {
				if unable(r.key()) {
					r.passLocked(o, notify)
				}
			}
		}
	})
}

// PassOutOfSync records that owner does not repair an object, after another owner could not check it, or if next is
// not on record and another owner is left to be asked. Otherwise it does nothing, and returns false.
func (l *Tracker) PassOutOfSync(owner, next Owner, key ID) (passed bool) {
	l.updateObject(key, func(r *record, notify *notices) {
		o, absent := l.owners[owner], !slices.Contains(r.owners, l.owners[next])
		if o != nil && (absent || r.passed > 0) {
			passed = r.passLocked(o, notify) || !absent
		}
	})
	return passed
}

// KeepOutOfSync records that a ManagedResource is going to check an object later. It does not count as unable: if
// another owner checks the object meanwhile, and leaves it, the object stays stale.
func (l *Tracker) KeepOutOfSync(owner Owner, key ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil {
		r.canLocked(o)
	}
}

// transferLocked moves a stale object from owner to next, nil if that is not on record. seen is the object as owner
// read it, zero without a read.
func (r *record) transferLocked(owner, next *ownerRecord, seen Observation, notify *notices) {
	delete(owner.dirty, r)
	if r.desired == 0 {
		r.desired = seen.Desired // Later changes are drift, though next has not compared the object since the start.
	}
	r.canLocked(owner)
	last := len(r.owners) - 1
	i := slices.Index(r.owners, next) // -1 if it is not on record, which is less than r.passed.
	switch {
	case i < 0 && r.owners[last] != owner:
	case i < int(r.passed) && r.certainty == stale && r.outdates(seen):
		r.lastLocked(owner) // No other owner can check the later changes.
		r.outOfSyncLocked(notify)
	case i < int(r.passed):
		// The next owner could not check the object, and another one did. A later change begins anew.
		r.lastLocked(next)
		if r.certainty == stale {
			r.certainty = unverified
		}
		r.untold, r.retryPartial, r.passed = false, false, 0
		for _, o := range r.owners {
			delete(o.dirty, r)
		}
	case i < last:
		r.lastLocked(next)
		if r.certainty == stale {
			r.outOfSyncLocked(notify)
		}
	}
}

// lastLocked makes an owner the last one, which is notified of changes of the object.
func (r *record) lastLocked(o *ownerRecord) {
	if i := slices.Index(r.owners, o); i >= 0 {
		r.owners = append(slices.Delete(r.owners, i, i+1), o)
		if i < int(r.passed) {
			r.passed--
		}
	}
}

// canLocked removes an owner, which has checked the object or is going to, from the owners that cannot check it.
func (r *record) canLocked(o *ownerRecord) {
	if i := slices.Index(r.owners, o); i >= 0 && i < int(r.passed) {
		r.passed--
		r.owners = slices.Insert(slices.Delete(r.owners, i, i+1), int(r.passed), o)
	}
}

// passLocked passes a stale object from an owner that cannot check it to the one before, unless all were asked. Owners
// that were asked stand at the front.
func (r *record) passLocked(o *ownerRecord, notify *notices) (passed bool) {
	last := len(r.owners) - 1
	if r.certainty != stale || r.owners[last] != o || int(r.passed) > last {
		return false // Two owners that check the object for another reason would wake each other for ever.
	}
	if r.passed == math.MaxUint16 {
		return false // The counter is full.
	}
	if r.passed++; int(r.passed) > last {
		return false
	}
	copy(r.owners[1:], r.owners[:last])
	r.owners[0] = o
	r.outOfSyncLocked(notify)
	return true
}
