package controller

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// quarrel is after how many repairs an object is taken for one that somebody else keeps changing.
	quarrel = 10
	// slowest is the pause between two repairs in a quarrel: two a minute (MRB-34).
	slowest = 30 * time.Second
	// quiet is how long nothing must have happened to an object before it is repaired at once again. It is longer than any
	// pause, so that waiting does not look like peace.
	quiet = 10 * time.Minute
	// patience is how many looks at an object at once may find nothing to put right, as when somebody renews an annotation all the time;
	// then it is looked at once in lookPause. So much time makes up for one of them: what changes more seldom is always looked at at once.
	patience, lookPause = 10, 10 * time.Second
)

// drifts says when an object that somebody else changed is put right: after the configured delay, and later and later if it is
// changed again after each repair. One that is changed all the time, though nothing is to be put right, is not looked at each time.
//
// Invariant: a drift is open from when it is noticed until the object was applied, and is held only until its time: a further change
// of the object neither extends that nor counts. Only repairs make a quarrel, not changes that need none, and only quiet ends it.
//
// Each object that something happened to has a record until it is quiet, however many there are: one that had none would be put right at
// full speed for ever. A record has some 250 bytes, and its object is one of those that the ledger has as many of.
type drifts struct {
	clock clock.PassiveClock
	// delay is managedResource.driftRepairDelay.
	delay time.Duration

	mu    sync.Mutex
	byKey map[objects.Key]*driftRecord
	// forgetAt is when those that are quiet are looked for.
	forgetAt time.Time
}

type driftRecord struct {
	// repairs counts those since the last time of quiet.
	repairs int
	last    time.Time
	// calm is when the looks that found nothing to put right are made up for.
	calm time.Time
	// open is true while there is a drift; then it may be looked at from look on, until is its time, and told is true if it was told of.
	open, told  bool
	look, until time.Time
}

func newDrifts(clock clock.PassiveClock, delay time.Duration) *drifts {
	return &drifts{clock: clock, delay: delay, byKey: map[objects.Key]*driftRecord{}}
}

// noticed notes that an object may not be as it should be and returns after what time it may be put right.
func (d *drifts) noticed(key objects.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	r := d.recordLocked(key, now)
	if r.open {
		return max(0, r.until.Sub(now))
	}
	wait := d.delay
	if r.repairs >= quarrel {
		wait = max(wait, min(time.Second<<min(r.repairs-quarrel, 5), slowest))
	}
	r.open, r.told, r.until = true, false, now.Add(wait)
	if r.look = r.calm.Add(-(patience - 1) * lookPause); r.look.After(r.until) {
		r.until = r.look
	}
	return r.until.Sub(now)
}

// due returns after what time an object is to be looked at of which it was noticed that it may not be as it should be: as soon as it may be
// looked at, to tell of it, though it may be put right later; in a quarrel, which was told of, when it is put right.
func (d *drifts) due(key objects.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	switch {
	case r == nil || !r.open:
		return 0
	case r.repairs >= quarrel:
		return max(0, r.until.Sub(d.clock.Now()))
	}
	return max(0, r.look.Sub(d.clock.Now()))
}

// recordLocked returns what is remembered of an object to which something happens now.
func (d *drifts) recordLocked(key objects.Key, now time.Time) *driftRecord {
	d.forgetLocked(now)
	r := d.byKey[key]
	if r == nil || d.quietLocked(r, now) {
		r = &driftRecord{}
		d.byKey[key] = r
	}
	r.last = now
	return r
}

func (d *drifts) quietLocked(r *driftRecord, now time.Time) bool {
	return now.Sub(r.last) > quiet+d.delay
}

// forgetLocked forgets, from time to time, what is quiet. The map is a new one: one that many things are deleted from stays as large as it was.
func (d *drifts) forgetLocked(now time.Time) {
	if d.forgetAt.After(now) {
		return
	}
	kept := map[objects.Key]*driftRecord{}
	for key, r := range d.byKey {
		if !d.quietLocked(r, now) {
			kept[key] = r
		}
	}
	d.byKey, d.forgetAt = kept, now.Add(quiet+d.delay)
}

// held returns for how long an object must not be put right yet, or not be looked at to tell of it; zero or less if it may be.
func (d *drifts) held(key objects.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, now := d.byKey[key], d.clock.Now()
	switch {
	case r == nil || !r.open:
		return 0
	case d.untoldLocked(r) && r.look.After(now):
		return r.look.Sub(now)
	}
	return r.until.Sub(now)
}

// isOpen says whether there is a drift that was noticed and not put right yet.
func (d *drifts) isOpen(key objects.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.open
}

// untold says whether the present drift of an object that is held is to be told of now.
func (d *drifts) untold(key objects.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && d.untoldLocked(r) && !r.look.After(d.clock.Now())
}

// untoldLocked says whether a drift is still to be told of: with a delay each one, else only that a quarrel has begun.
func (d *drifts) untoldLocked(r *driftRecord) bool {
	return r.open && !r.told && (d.delay > 0 || r.repairs == quarrel)
}

// told notes that the present drift of an object was told of.
func (d *drifts) told(key objects.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byKey[key]; r != nil {
		r.told = true
	}
}

// unfounded notes that nothing was to be put right about an object: what happens to it next is a drift of its own.
func (d *drifts) unfounded(key objects.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, now := d.byKey[key], d.clock.Now()
	if r == nil || !r.open {
		return
	}
	r.open = false
	if r.calm.Before(now) {
		r.calm = now
	}
	if r.calm = r.calm.Add(lookPause); r.calm.After(now.Add(patience * lookPause)) {
		r.calm = now.Add(patience * lookPause) // Looks that somebody asked for are no reason to wait longer.
	}
}

// repaired notes that an object was put right, and says whether that is still to be told of: with a delay each one that was not
// told of before, else only the first one after a time of quiet.
func (d *drifts) repaired(key objects.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.recordLocked(key, d.clock.Now())
	r.repairs++
	told := r.open && r.told
	r.open = false
	return !told && (d.delay > 0 || r.repairs == 1)
}

// waited returns how long the repair of an object has been waited for since it may be repaired, and whether a drift of it is open.
func (d *drifts) waited(key objects.Key) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	if r == nil || !r.open {
		return 0, false
	}
	return max(0, d.clock.Now().Sub(r.until)), true
}

// quarrels says whether somebody else keeps changing an object.
func (d *drifts) quarrels(key objects.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.repairs >= quarrel
}
