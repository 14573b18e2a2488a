package managedresource

import (
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
	// mostHeld bounds what is remembered; beyond that, what is not in a quarrel is forgotten.
	mostHeld = 10_000
)

// drifts says when an object that somebody else changed is put right: after the configured delay, and later and later if it is
// changed again each time.
//
// Invariant: an object is held only until its time, a change while it is held neither extends that nor counts, and only quiet
// makes it start anew.
type drifts struct {
	clock clock.PassiveClock
	// delay is managedResource.driftRepairDelay.
	delay time.Duration

	mu    sync.Mutex
	byKey map[ledger.Key]*driftRecord
}

type driftRecord struct {
	count       int
	last, until time.Time
	told        bool
}

func newDrifts(clock clock.PassiveClock, delay time.Duration) *drifts {
	return &drifts{clock: clock, delay: delay, byKey: map[ledger.Key]*driftRecord{}}
}

// noticed notes that an object is not as it should be and returns after what time it may be put right.
func (d *drifts) noticed(key ledger.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	r := d.byKey[key]
	if r == nil || now.Sub(r.last) > quiet+d.delay {
		d.makeRoomLocked(now)
		r = &driftRecord{}
		d.byKey[key] = r
	}
	r.last = now
	if r.until.After(now) {
		return r.until.Sub(now)
	}
	r.count++
	r.told = false
	wait := d.delay
	if r.count > quarrel {
		wait = max(wait, min(time.Second<<min(r.count-quarrel-1, 5), slowest))
	}
	r.until = now.Add(wait)
	return wait
}

func (d *drifts) makeRoomLocked(now time.Time) {
	if len(d.byKey) < mostHeld {
		return
	}
	for key, r := range d.byKey {
		if now.Sub(r.last) > quiet+d.delay || (r.count <= quarrel && !r.until.After(now)) {
			delete(d.byKey, key)
		}
	}
}

// held returns for how long an object must not be put right yet; zero or less if it may be.
func (d *drifts) held(key ledger.Key) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.byKey[key]; r != nil {
		return r.until.Sub(d.clock.Now())
	}
	return 0
}

// tell says whether the present drift of an object is still to be told of: once for each that is held, and of those that are
// put right at once the first one after a time of quiet.
func (d *drifts) tell(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	if r == nil || r.told {
		return false
	}
	r.told = true
	return d.delay > 0 || r.count == 1 || r.count == quarrel+1
}

// quarrels says whether somebody else keeps changing an object.
func (d *drifts) quarrels(key ledger.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byKey[key]
	return r != nil && r.count > quarrel
}
