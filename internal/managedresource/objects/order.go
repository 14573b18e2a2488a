package objects

import (
	"math"
	"slices"
)

// The order of an object's owners decides which owner repairs the object. Claims say which objects a run applies or
// drops, and end with the run; the order outlives runs, and so cannot be one of their flags:
//
//	[owners that cannot look | owners to be asked | the owner that is notified]
//
// The last owner is notified of drift: it verified the object last. If it cannot look, it goes to the front, and the
// owner before it is notified. The first owners, as many as passed says, were notified since the object was last
// verified, and could not look. Once all were notified, the next change begins anew.

// Transfer records that keeper keeps an object that owner has, too: keeper checks the object from now on, at once if
// it is in doubt. If keeper does not have the object on record, the next change raises a doubt anew.
func (l *Tracker) Transfer(next, owner Owner, key Key) { l.transfer(next, owner, key, Observation{}) }

// TransferSeen is Transfer by an owner that has read the object: it does not take back changes that were seen since
// that read.
func (l *Tracker) TransferSeen(next, owner Owner, seen Observation) {
	l.transfer(next, owner, seen.Key, seen)
}

func (l *Tracker) transfer(next, owner Owner, key Key, seen Observation) {
	l.updateObject(key, func(r *record, notify *notices) {
		if o := l.owners[owner]; o != nil {
			r.transferLocked(l.owners[next], o, seen, notify)
		}
	})
}

// PassAllOutOfSync records that a ManagedResource cannot check objects at present, for example because one of its
// Secrets is missing. It leaves the objects in doubt to other owners: each owner is asked once until one of them has
// verified the object, so that owners which all cannot check it do not wake each other for ever.
func (l *Tracker) PassAllOutOfSync(owner Owner, unable func(Key) bool) {
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

// PassOutOfSync records that owner does not repair an object, after another owner has said that it cannot check the
// object, or if keeper is not on record and another owner is left to be asked. Otherwise it does nothing, and returns
// false.
func (l *Tracker) PassOutOfSync(owner, next Owner, key Key) (passed bool) {
	l.updateObject(key, func(r *record, notify *notices) {
		o, absent := l.owners[owner], !slices.Contains(r.owners, l.owners[next])
		if o != nil && (absent || r.passed > 0) {
			passed = r.passLocked(o, notify) || !absent
		}
	})
	return passed
}

// KeepOutOfSync records that a ManagedResource is going to check an object later: it does not count as unable, so that
// it keeps the doubt when another owner checks the object meanwhile, and leaves it.
func (l *Tracker) KeepOutOfSync(owner Owner, key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, o := l.findLocked(key), l.owners[owner]; r != nil && o != nil {
		r.canLocked(o)
	}
}

// transferLocked takes a doubt from an owner, which has seen the object so, if at all, and gives it to the one that
// keeps it, nil if that is not on record.
func (r *record) transferLocked(next, owner *ownerRecord, seen Observation, notify *notices) {
	delete(owner.dirty, r)
	if r.desired == 0 {
		r.desired = seen.Desired // What happens to it next is drift, though its keeper has not compared it since the start.
	}
	r.canLocked(owner)
	last := len(r.owners) - 1
	i := slices.Index(r.owners, next) // -1, and less than how many said that they cannot look, if it is not on record.
	switch {
	case i < 0 && r.owners[last] != owner:
	case i < int(r.passed) && r.certainty == stale && r.outdates(seen):
		r.lastLocked(owner) // Nobody else can look at what came since.
		r.outOfSyncLocked(notify)
	case i < int(r.passed):
		// The keeper said that it cannot look, and another one did. The next change is asked about anew.
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

// canLocked removes an owner, which has checked the object or is going to, from the owners that cannot look.
func (r *record) canLocked(o *ownerRecord) {
	if i := slices.Index(r.owners, o); i >= 0 && i < int(r.passed) {
		r.passed--
		r.owners = slices.Insert(slices.Delete(r.owners, i, i+1), int(r.passed), o)
	}
}

// passLocked gives a doubt of an owner that cannot look to the next one, unless all were asked. Owners that were asked
// stand at the front.
func (r *record) passLocked(o *ownerRecord, notify *notices) (passed bool) {
	last := len(r.owners) - 1
	if r.certainty != stale || r.owners[last] != o || int(r.passed) > last {
		return false // Without a doubt there is nothing to pass on: two that look for another reason would wake each other for ever.
	}
	if r.passed == math.MaxUint16 {
		return false // So many that cannot look are told, and no more.
	}
	if r.passed++; int(r.passed) > last {
		return false
	}
	copy(r.owners[1:], r.owners[:last])
	r.owners[0] = o
	r.outOfSyncLocked(notify)
	return true
}
