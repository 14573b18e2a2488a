package objects

import "time"

const (
	// fightThreshold is the number of repairs after which the tracker reports that another writer keeps changing the
	// object.
	fightThreshold = 10
	// slowest is the longest pause between two repairs in a fight: two repairs a minute (MRB-34).
	slowest = 30 * time.Second
	// quiet is the time without changes after which an object is again repaired at once. It is longer than any pause,
	// so that a delayed repair does not end the fight.
	quiet = 10 * time.Minute
	// burst limits the immediate checks of an object that find nothing to repair, for example if another writer keeps
	// renewing an annotation. Further checks are lookPause apart. Each lookPause without a check permits one more
	// immediate check, so that an object that changes less often is always checked at once.
	burst, lookPause = 10, 10 * time.Second
)

// repairs paces the repairs of one object that another writer changes. A repair follows after the configured delay,
// and later each time if the object is changed again after each repair. An object that keeps changing without a need
// for repair is not checked after each change.
//
// Invariant: a drift is open from when it is noticed until the object was applied. Its time is set once: further
// changes of the object neither extend it nor count. Only repairs count towards a fight, and only a time without
// changes ends it.
type repairs struct {
	// count is the number of repairs since the last quiet period; last is the time of the latest change or repair.
	count int
	last  time.Time
	// calm is the time at which the checks that found nothing to repair no longer delay further checks.
	calm time.Time
	// open is true while there is a drift. The object may then be checked from look on, and repaired from until on.
	// reported is true if the drift was reported.
	open, reported bool
	look, until    time.Time
	// atOnce is true from the end of a hold until the next drift, whose repair is not delayed.
	atOnce bool
}

func (p *repairs) isFight() bool { return p.count >= fightThreshold }

// mustReport reports whether a drift must still be reported: each drift if repairs are delayed, otherwise only the
// start of a fight.
func (p *repairs) mustReport(delay time.Duration) bool {
	return p.open && !p.reported && (delay > 0 || p.count == fightThreshold)
}

// opens begins a drift, unless one is open.
func (p *repairs) opens(now time.Time, delay time.Duration) {
	if p.open {
		return
	}
	if p.atOnce {
		*p = repairs{last: now, open: true, reported: true, look: now, until: now}
		return
	}
	wait := delay
	if p.isFight() {
		wait = max(wait, min(time.Second<<min(p.count-fightThreshold, 5), slowest))
	}
	p.open, p.reported, p.until = true, false, now.Add(wait)
	if p.look = p.calm.Add(-(burst - 1) * lookPause); p.look.After(p.until) {
		p.until = p.look
	}
}

// unfounded ends a drift that needed no repair. The next change begins another drift.
func (p *repairs) unfounded(now time.Time) {
	if !p.open {
		return
	}
	p.open = false
	if p.calm.Before(now) {
		p.calm = now
	}
	if p.calm = p.calm.Add(lookPause); p.calm.After(now.Add(burst * lookPause)) {
		p.calm = now.Add(burst * lookPause) // Requested checks do not extend the wait beyond that.
	}
}

// Repairs is the part of the Tracker that paces the repairs of objects.
type Repairs struct {
	*table
	// RepairDelay is managedResource.driftRepairDelay. It must be set before the first drift.
	RepairDelay time.Duration
}

func (rep *Repairs) isQuietLocked(p *repairs, now time.Time) bool {
	return now.Sub(p.last) > quiet+rep.RepairDelay
}

// repairsLocked returns the repairs of an object that is being changed or repaired.
func (rep *Repairs) repairsLocked(r *record, now time.Time) *repairs {
	p := &rep.rareLocked(r).repairs
	if rep.isQuietLocked(p, now) {
		*p = repairs{atOnce: p.atOnce}
	}
	p.last = now
	return p
}

// Drift is the drift of an object at a given time. The zero value means no drift.
type Drift struct {
	// Open is true if a drift was noticed and has not been repaired yet.
	Open bool
	// Wait is the time until the object may be repaired, or may be checked to report the drift; zero or less if it
	// may be now.
	Wait time.Duration
	// Due is the time until the object must be checked: when the drift may be reported, even if the repair is later,
	// or, in a fight, which was already reported, when it may be repaired.
	Due time.Duration
	// Fight is true if another writer keeps changing the object.
	Fight bool
	// Unreported is true if the drift must be reported now, because its repair is delayed or was made without a
	// report.
	Unreported bool
	// Waited is the time since the repair was allowed.
	Waited time.Duration
}

// DriftEvent is an event in the drift of an object.
type DriftEvent int

// Events of a drift.
const (
	// DriftNoticed means that the object may not be in sync any more.
	DriftNoticed DriftEvent = iota + 1
	// DriftReported means that the current drift was reported.
	DriftReported
	// DriftUnfounded means that the object needed no repair.
	DriftUnfounded
	// DriftRepaired means that the object was repaired.
	DriftRepaired
	// HoldEnded means that the hold on the object has ended. The object is out of sync, and is checked and repaired
	// at once, regardless of earlier repairs.
	HoldEnded
)

// Drift records events of an object's drift in their order, and returns the resulting drift. After DriftRepaired, it
// returns the drift that the repair ended. This drift must be reported if Unreported is true: if repairs are delayed,
// each unreported drift, otherwise only the first one after a quiet period.
func (rep *Repairs) Drift(id ID, now time.Time, events ...DriftEvent) (drift Drift) {
	rep.updateObject(id, func(r *record, notify *notices) {
		if r.rare != nil {
			drift = r.rare.repairs.drift(now, rep.RepairDelay)
		}
		for _, event := range events {
			drift = rep.driftLocked(r, now, event, notify)
		}
	})
	return drift
}

func (rep *Repairs) driftLocked(r *record, now time.Time, event DriftEvent, notify *notices) Drift {
	if r.rare == nil && (event == DriftReported || event == DriftUnfounded) {
		return Drift{}
	}
	switch event {
	case DriftNoticed:
		rep.repairsLocked(r, now).opens(now, rep.RepairDelay)
	case DriftReported:
		r.rare.repairs.reported = true
	case DriftUnfounded:
		r.rare.repairs.unfounded(now)
	case DriftRepaired:
		var ended Drift
		if r.rare != nil {
			ended = r.rare.repairs.drift(now, rep.RepairDelay)
		}
		p := rep.repairsLocked(r, now)
		p.count++
		isReported := p.open && p.reported
		p.open = false
		ended.Fight, ended.Unreported = p.isFight(), !isReported && (rep.RepairDelay > 0 || p.count == 1)
		return ended
	case HoldEnded:
		rep.holdEndedLocked(r, notify)
	}
	return r.rare.repairs.drift(now, rep.RepairDelay)
}

func (t *table) holdEndedLocked(r *record, notify *notices) {
	t.rareLocked(r).repairs = repairs{atOnce: true}
	r.markLocked(notify)
}

// setHoldLocked records the hold on an object. It reports whether this replaces another hold, so that less may be
// exempt from repair now.
func (t *table) setHoldLocked(r *record, hold uint32) (ended bool) {
	if hold == 0 && r.rare == nil {
		return false
	}
	x := t.rareLocked(r)
	ended = x.hold != 0 && x.hold != hold
	x.hold = hold
	t.completeRareLocked(r)
	return ended
}

func (p *repairs) drift(now time.Time, delay time.Duration) Drift {
	d := Drift{Open: p.open, Fight: p.isFight()}
	if !p.open {
		return d
	}
	unreported := p.mustReport(delay)
	d.Unreported = unreported && !p.look.After(now)
	if d.Wait = p.until.Sub(now); unreported && p.look.After(now) {
		d.Wait = p.look.Sub(now)
	}
	if d.Due = max(0, p.look.Sub(now)); d.Fight {
		d.Due = max(0, p.until.Sub(now))
	}
	d.Waited = max(0, now.Sub(p.until))
	return d
}
