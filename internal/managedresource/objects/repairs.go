package objects

import "time"

const (
	// fightThreshold is after how many repairs the tracker concludes that another writer keeps changing the object.
	fightThreshold = 10
	// slowest is the pause between two repairs in a fight: two a minute (MRB-34).
	slowest = 30 * time.Second
	// quiet is how long nothing must have happened to an object before it is repaired at once again. It is longer than any
	// pause, so that waiting does not look like peace.
	quiet = 10 * time.Minute
	// burst limits how many immediate checks of an object may find nothing to repair, as when another writer keeps renewing an
	// annotation; then the object is checked once in lookPause. Each lookPause without a check makes up for one of them:
	// an object that changes less often is always checked at once.
	burst, lookPause = 10, 10 * time.Second
)

// repairs paces the repairs of one object that another writer changes: a repair follows after the configured delay, and
// later each time if the object is changed again after each repair. An object that keeps changing without a need for
// repair is not checked after each change.
//
// Invariant: a drift is open from when it is noticed until the object was applied, and is held only until its time: a
// further change of the object neither extends that nor counts. Only repairs make a fight, not changes that need none,
// and only quiet ends it.
type repairs struct {
	// count is that of repairs since the last time of quiet, and last when something happened to the object.
	count int
	last  time.Time
	// calm is when the looks that found nothing to repair are made up for.
	calm time.Time
	// open is true while there is a drift; then it may be looked at from look on, until is its time, and told is true if
	// it was told of.
	open, notify bool
	look, until  time.Time
	// atOnce is true from when a hold ended until a drift opens: nothing delays its repair.
	atOnce bool
}

func (p *repairs) isFight() bool { return p.count >= fightThreshold }

// untold reports whether a drift is still to be told of: with a delay each one, else only that a fight has begun.
func (p *repairs) untold(delay time.Duration) bool {
	return p.open && !p.notify && (delay > 0 || p.count == fightThreshold)
}

// opens begins a drift, unless one is open.
func (p *repairs) opens(now time.Time, delay time.Duration) {
	if p.open {
		return
	}
	if p.atOnce {
		*p = repairs{last: now, open: true, notify: true, look: now, until: now}
		return
	}
	wait := delay
	if p.isFight() {
		wait = max(wait, min(time.Second<<min(p.count-fightThreshold, 5), slowest))
	}
	p.open, p.notify, p.until = true, false, now.Add(wait)
	if p.look = p.calm.Add(-(burst - 1) * lookPause); p.look.After(p.until) {
		p.until = p.look
	}
}

// unfounded ends a drift of which nothing was to be repaired: what happens next is a drift of its own.
func (p *repairs) unfounded(now time.Time) {
	if !p.open {
		return
	}
	p.open = false
	if p.calm.Before(now) {
		p.calm = now
	}
	if p.calm = p.calm.Add(lookPause); p.calm.After(now.Add(burst * lookPause)) {
		p.calm = now.Add(burst * lookPause) // Looks that somebody asked for are no reason to wait longer.
	}
}

// SetRepairDelay sets managedResource.driftRepairDelay, for drifts that are noticed from now on.
func (l *Tracker) SetRepairDelay(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.repairDelay = delay
}

func (l *Tracker) isQuietLocked(p *repairs, now time.Time) bool {
	return now.Sub(p.last) > quiet+l.repairDelay
}

// repairsLocked are those of an object to which something happens now.
func (l *Tracker) repairsLocked(r *record, now time.Time) *repairs {
	p := &l.rareLocked(r).repairs
	if l.isQuietLocked(p, now) {
		*p = repairs{atOnce: p.atOnce}
	}
	p.last = now
	return p
}

// Drift is what is known of the drift of an object at a moment. Its zero value is that of an object without any.
type Drift struct {
	// Open is true if a drift was noticed and not repaired yet.
	Open bool
	// Held is for how long it must not be repaired yet, or not be looked at to report it; zero or less if it may be.
	Held time.Duration
	// Due is after what time it is to be looked at: as soon as that is allowed, to report it, though it may be repaired
	// later; in a fight, which was told of, when it is repaired.
	Due time.Duration
	// Fight is true if another writer keeps changing the object.
	Fight bool
	// Untold is true if the repair is held, and the drift is to be reported now.
	Untold bool
	// Waited is how long its repair has been waited for since it is allowed.
	Waited time.Duration
}

// NoticeDrift records that an object may not be in sync any more.
func (l *Tracker) NoticeDrift(key Key, now time.Time) Drift {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil {
		return Drift{}
	}
	p := l.repairsLocked(r, now)
	p.opens(now, l.repairDelay)
	return p.drift(now, l.repairDelay)
}

// DriftOf returns what is known of the drift of an object.
func (l *Tracker) DriftOf(key Key, now time.Time) Drift {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil || r.rare == nil {
		return Drift{}
	}
	return r.rare.repairs.drift(now, l.repairDelay)
}

// HoldEnded doubts an object that was left alone until now. It is looked at and repaired at once, whatever paced its
// repairs before.
func (l *Tracker) HoldEnded(key Key) {
	l.updateObject(key, func(r *record, notify *notices) { l.holdEndedLocked(r, notify) })
}

func (l *Tracker) holdEndedLocked(r *record, notify *notices) {
	l.rareLocked(r).repairs = repairs{atOnce: true}
	r.asked++
	r.changedLocked(notify)
}

// setHoldLocked notes the annotations by which an object is left alone. It returns whether others were there before, so
// that less may be left alone now.
func (l *Tracker) setHoldLocked(r *record, hold uint32) (ended bool) {
	if hold == 0 && r.rare == nil {
		return false
	}
	x := l.rareLocked(r)
	ended = x.hold != 0 && x.hold != hold
	x.hold = hold
	l.completeRareLocked(r)
	return ended
}

func (p *repairs) drift(now time.Time, delay time.Duration) Drift {
	d := Drift{Open: p.open, Fight: p.isFight()}
	if !p.open {
		return d
	}
	untold := p.untold(delay)
	d.Untold = untold && !p.look.After(now)
	if d.Held = p.until.Sub(now); untold && p.look.After(now) {
		d.Held = p.look.Sub(now)
	}
	if d.Due = max(0, p.look.Sub(now)); d.Fight {
		d.Due = max(0, p.until.Sub(now))
	}
	d.Waited = max(0, now.Sub(p.until))
	return d
}

// DriftReported notes that the present drift of an object was told of.
func (l *Tracker) DriftReported(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil && r.rare != nil {
		r.rare.repairs.notify = true
	}
}

// DriftUnfounded notes that nothing was to be repaired about an object.
func (l *Tracker) DriftUnfounded(key Key, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.findLocked(key); r != nil && r.rare != nil {
		r.rare.repairs.unfounded(now)
	}
}

// DriftRepaired notes that an object was repaired, and reports whether that is still to be told of: with a delay each
// repair that was not told of before, else only the first one after a time of quiet.
func (l *Tracker) DriftRepaired(key Key, now time.Time) (tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(key)
	if r == nil {
		return false
	}
	p := l.repairsLocked(r, now)
	p.count++
	notify := p.open && p.notify
	p.open = false
	return !notify && (l.repairDelay > 0 || p.count == 1)
}
