package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// observeGone reports that an object is gone; without a resource version, as a read that was sent now does.
func (l *Tracker) observeGone(id ID, uid types.UID, resourceVersion string) {
	gone := Observation{ID: id, UID: uid, ResourceVersion: resourceVersion, Gone: true}
	if resourceVersion == "" {
		gone.Since = l.Get(id).Revision
	}
	l.Observe(gone)
}

// claim claims objects, and reports whether the run is busy.
func (l *Tracker) claim(owner Owner, applies []ID, releases []Ref) bool {
	_, busy := l.Claim(owner, applies, releases)
	return busy
}

// markKept reports that another ManagedResource keeps an object.
func (l *Tracker) markKept(owner Owner, s Observation) {
	s.Kept = true
	l.MarkInSync(owner, s)
}

func (l *Tracker) inSync(id ID, desired uint64) bool {
	o := l.Get(id)
	return o.InSync && o.Desired == desired
}

func (l *Tracker) drifted(id ID, desired uint64) bool {
	o := l.Get(id)
	return o.OutOfSync && !o.RetryPartial && o.Desired == desired
}

func (l *Tracker) isOurs(id ID, uid types.UID) bool { return uid != "" && l.Get(id).Created == uid }

func (l *Tracker) isBeingDeleted(id ID) bool { return l.Get(id).BeingDeleted }

func (l *Tracker) changesNothing(id ID, w Write, now time.Time) bool {
	o := l.Get(id)
	return o.Noop.Write == w && now.Before(o.Noop.Until)
}
