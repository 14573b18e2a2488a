package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// observeGone reports that an object is gone; without a resource version, as a read that was sent now does.
func (t *Tracker) observeGone(id ID, uid types.UID, resourceVersion string) {
	gone := Observation{ID: id, UID: uid, ResourceVersion: resourceVersion, Gone: true}
	if resourceVersion == "" {
		gone.Since = t.Get(id).Revision
	}
	t.Observe(gone)
}

// claim claims objects, and reports whether the run is busy.
func (t *Tracker) claim(owner Owner, applies []ID, releases []Ref) bool {
	_, busy := t.Claim(owner, applies, releases)
	return busy
}

// markKept reports that another ManagedResource keeps an object.
func (t *Tracker) markKept(owner Owner, s Observation) {
	s.Kept = true
	t.MarkInSync(owner, s)
}

func (t *Tracker) inSync(id ID, desired uint64) bool {
	o := t.Get(id)
	return o.InSync && o.Desired == desired
}

func (t *Tracker) drifted(id ID, desired uint64) bool {
	o := t.Get(id)
	return o.OutOfSync && !o.RetryPartial && o.Desired == desired
}

func (t *Tracker) isOurs(id ID, uid types.UID) bool { return uid != "" && t.Get(id).Created == uid }

func (t *Tracker) isBeingDeleted(id ID) bool { return t.Get(id).BeingDeleted }

func (t *Tracker) changesNothing(id ID, w Write, now time.Time) bool {
	o := t.Get(id)
	return o.Noop.Write == w && now.Before(o.Noop.Until)
}
