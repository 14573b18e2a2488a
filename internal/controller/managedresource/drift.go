package managedresource

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

const (
	// quarrel is after how many repairs an object is taken for one that somebody else keeps changing.
	quarrel = 10
	// slowest is the pause between two repairs in a quarrel: two a minute (MRB-34).
	slowest = 30 * time.Second
	// quiet is how long nothing must have happened to an object before it is repaired at once again. It is longer than any
	// pause, so that waiting does not look like peace.
	quiet = 10 * time.Minute
	// mostHeld bounds what is remembered: some 300 bytes an object. makeRoomPause is between two looks for what may be forgotten, as
	// long as nothing was found.
	mostHeld, makeRoomPause = 10_000, time.Minute
)

// drifts says when an object that somebody else changed is put right: after the configured delay, and later and later if it is
// changed again after each repair.
//
// Invariant: a drift is open from when it is noticed until the object was applied, and is held only until its time: a further change
// of the object neither extends that nor counts. Only repairs make a quarrel, not changes that need none, and only quiet ends it.
type drifts struct {
	clock clock.PassiveClock
	// delay is managedResource.driftRepairDelay.
	delay time.Duration

	mu    sync.Mutex
	byKey map[ledger.Key]*driftRecord
	// crowd is until when those are held for which there was no room in byKey: one time for all of them.
	crowd time.Time
	// fullUntil is until when no room is looked for.
	fullUntil time.Time
}

type driftRecord struct {
	// repairs counts those since the last time of quiet.
	repairs int
	last    time.Time
	// open is true while there is a drift; then until is its time, and told is true if it was told of.
	open, told bool
	until      time.Time
}

func newDrifts(clock clock.PassiveClock, delay time.Duration) *drifts {
	return &drifts{clock: clock, delay: delay, byKey: map[ledger.Key]*driftRecord{}}
}

// noticed notes that an object may not be as it should be and returns after what time it may be put right.
func (d *drifts) noticed(key ledger.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	r := d.recordLocked(key, now)
	if r == nil {
		if !d.crowd.After(now) {
			d.crowd = now.Add(d.delay)
		}
		return d.crowd.Sub(now)
	}
	if r.open {
		return max(0, r.until.Sub(now))
	}
	wait := d.delay
	if r.repairs >= quarrel {
		wait = max(wait, min(time.Second<<min(r.repairs-quarrel, 5), slowest))
	}
	r.open, r.told, r.until = true, false, now.Add(wait)
	return wait
}

// recordLocked returns what is remembered of an object to which something happens now; nil if there is no room for it.
func (d *drifts) recordLocked(key ledger.Key, now time.Time) *driftRecord {
	r := d.byKey[key]
	switch {
	case r == nil && !d.roomLocked(now):
		return nil
	case r == nil || d.quietLocked(r, now):
		r = &driftRecord{}
		d.byKey[key] = r
	}
	r.last = now
	return r
}

func (d *drifts) quietLocked(r *driftRecord, now time.Time) bool {
	return now.Sub(r.last) > quiet+d.delay
}

// roomLocked says whether one more object can be remembered, and forgets others for it: those that are quiet, and those without
// a drift or a quarrel.
func (d *drifts) roomLocked(now time.Time) bool {
	if len(d.byKey) < mostHeld {
		return true
	}
	if d.fullUntil.After(now) {
		return false
	}
	maps.DeleteFunc(d.byKey, func(_ ledger.Key, r *driftRecord) bool {
		return d.quietLocked(r, now) || (r.repairs < quarrel && !r.open)
	})
	if len(d.byKey) < mostHeld {
		return true
	}
	d.fullUntil = now.Add(makeRoomPause)
	return false
}

// held returns for how long an object must not be put right yet; zero or less if it may be.
func (d *drifts) held(key ledger.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byKey[key]; r != nil && r.open {
		return r.until.Sub(d.clock.Now())
	} else if r != nil {
		return 0
	}
	return d.crowd.Sub(d.clock.Now())
}

// isOpen says whether there is a drift that was noticed and not put right yet.
func (d *drifts) isOpen(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.open
}

// untold says whether the present drift of an object that is held is still to be told of: with a delay each one, else only that a
// quarrel has begun. One of the crowd is told of when it is put right.
func (d *drifts) untold(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.open && !r.told && (d.delay > 0 || r.repairs == quarrel)
}

// told notes that the present drift of an object was told of.
func (d *drifts) told(key ledger.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byKey[key]; r != nil {
		r.told = true
	}
}

// unfounded notes that nothing was to be put right about an object: what happens to it next is a drift of its own.
func (d *drifts) unfounded(key ledger.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byKey[key]; r != nil {
		r.open = false
	}
}

// repaired notes that an object was put right, and says whether that is still to be told of: with a delay each one that was not
// told of before, else only the first one after a time of quiet.
func (d *drifts) repaired(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.recordLocked(key, d.clock.Now())
	if r == nil {
		return d.delay > 0
	}
	r.repairs++
	told := r.open && r.told
	r.open = false
	return !told && (d.delay > 0 || r.repairs == 1)
}

// quarrels says whether somebody else keeps changing an object.
func (d *drifts) quarrels(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.repairs >= quarrel
}
