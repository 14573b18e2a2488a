package controller

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// noObject is the key of the hold on a ManagedResource itself.
var noObject objects.ID

// holdEntry is a hold in force.
type holdEntry struct {
	// look is the time of the next check of the object, at which the first of its holds ends.
	look time.Time
	// own is the end of the hold by the annotations of the object itself; zero if only its ManagedResource has some.
	own time.Time
}

// holds remembers the holds in force, to check their objects when they end, and to report each once. The annotations
// alone decide which holds are in force: no entry here exempts an object. It is safe for concurrent use.
//
// Invariant: an object that a run left alone because of a hold is here until the hold ends, or a run finds none on it.
type holds struct {
	count, ends *prometheus.GaugeVec
	// changed has a value when the next end may have changed.
	changed chan struct{}

	mu      sync.Mutex
	byOwner map[objects.Owner]map[objects.ID]holdEntry
}

func newHolds(metrics *Metrics) *holds {
	return &holds{count: metrics.held, ends: metrics.heldUntil, changed: make(chan struct{}, 1),
		byOwner: map[objects.Owner]map[objects.ID]holdEntry{}}
}

// are records a hold, and reports whether its annotations on the object, or on the ManagedResource itself, are new to
// this process.
func (x *holds) are(owner objects.Owner, key objects.ID, entry holdEntry) (isNew bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.byOwner[owner]
	if known == nil {
		known = map[objects.ID]holdEntry{}
		x.byOwner[owner] = known
	}
	before, found := known[key]
	if found && before == entry {
		return false
	}
	known[key] = entry
	x.showLocked(owner)
	select {
	case x.changed <- struct{}{}:
	default:
	}
	return !entry.own.IsZero() && !before.own.Equal(entry.own)
}

// end forgets a hold, and returns it.
func (x *holds) end(owner objects.Owner, key objects.ID) holdEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	entry, found := x.byOwner[owner][key]
	if found {
		x.dropLocked(owner, key)
	}
	return entry
}

func (x *holds) dropLocked(owner objects.Owner, key objects.ID) {
	delete(x.byOwner[owner], key)
	if len(x.byOwner[owner]) == 0 {
		delete(x.byOwner, owner)
	}
	x.showLocked(owner)
}

// of returns the held objects of a ManagedResource, in no order.
func (x *holds) of(owner objects.Owner) []objects.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := make([]objects.ID, 0, len(x.byOwner[owner]))
	for key := range x.byOwner[owner] {
		keys = append(keys, key)
	}
	return keys
}

// keep forgets the holds of objects that a ManagedResource no longer has.
func (x *holds) keep(owner objects.Owner, has func(objects.ID) bool) {
	for _, key := range x.of(owner) {
		if key != noObject && !has(key) {
			x.end(owner, key)
		}
	}
}

// forget forgets all holds of a ManagedResource.
func (x *holds) forget(owner objects.Owner) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byOwner, owner)
	x.showLocked(owner)
}

// heldObject is an object, or a ManagedResource itself, whose hold has ended.
type heldObject struct {
	owner objects.Owner
	key   objects.ID
}

// due forgets the holds that have ended, and returns their objects and the time until the next hold ends; zero if
// there is none.
func (x *holds) due(now time.Time) (due []heldObject, next time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, known := range x.byOwner {
		for key, entry := range known {
			wait := entry.look.Sub(now)
			if wait <= 0 {
				due = append(due, heldObject{owner, key})
			} else if next == 0 || wait < next {
				next = wait
			}
		}
	}
	for _, ended := range due {
		x.dropLocked(ended.owner, ended.key)
	}
	return due, next
}

// showLocked updates the series of a ManagedResource.
func (x *holds) showLocked(owner objects.Owner) {
	var ends []time.Time
	for _, entry := range x.byOwner[owner] {
		if !entry.own.IsZero() {
			ends = append(ends, entry.own)
		}
	}
	first := 0.0
	if len(ends) > 0 {
		first = float64(slices.MinFunc(ends, time.Time.Compare).Unix())
	}
	setGauge(x.count, owner, float64(len(ends)))
	setGauge(x.ends, owner, first)
}

// setGauge sets the series of a ManagedResource, which has none while the number is zero.
func setGauge(gauge *prometheus.GaugeVec, owner objects.Owner, n float64) {
	if n == 0 {
		gauge.DeleteLabelValues(owner.Namespace, owner.Name)
		return
	}
	gauge.WithLabelValues(owner.Namespace, owner.Name).Set(n)
}
