package apply

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// ManagedResourceItself is the key of the hold on a ManagedResource itself.
var ManagedResourceItself objects.ID

// HoldEntry is a hold in force.
type HoldEntry struct {
	// CheckAt is the time of the next check of the object, at which the first of its holds ends.
	CheckAt time.Time
	// Until is the end of the hold by the annotations of the object itself; zero if only its ManagedResource has a
	// hold.
	Until time.Time
}

// Holds stores the holds in force, to check their objects when they end, and to report each once. The annotations
// alone decide which holds are in force: no entry here exempts an object. It is safe for concurrent use.
//
// Invariant: an object that a run left alone because of a hold is stored until the hold ends, or a run finds no hold
// on it.
type Holds struct {
	events      *source.Events
	count, ends *prometheus.GaugeVec
	// changed has a value when the next end may have changed.
	changed chan struct{}

	mu      sync.Mutex
	byOwner map[objects.Owner]map[objects.ID]HoldEntry
}

// NewHolds returns Holds without a hold; count and ends are the gauges for the number of holds and their first end.
func NewHolds(events *source.Events, count, ends *prometheus.GaugeVec) *Holds {
	return &Holds{events: events, count: count, ends: ends, changed: make(chan struct{}, 1),
		byOwner: map[objects.Owner]map[objects.ID]HoldEntry{}}
}

// Changed returns a channel that has a value when the next end may have changed.
func (x *Holds) Changed() <-chan struct{} { return x.changed }

// Report logs a change of a hold, and reports it as an Event about the ManagedResource.
func (x *Holds) Report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	log.FromContext(ctx).Info("Hold", "event", reason, "message", message)
	if reason == ReasonHoldBegan || reason == ReasonHoldRefused {
		x.events.Warn(ctx, mr, reason, message)
		return
	}
	x.events.Report(ctx, mr, reason, message)
}

// Set records a hold, and reports whether its annotations on the object, or on the ManagedResource itself, are new to
// this process.
func (x *Holds) Set(owner objects.Owner, key objects.ID, entry HoldEntry) (isNew bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known := x.byOwner[owner]
	if known == nil {
		known = map[objects.ID]HoldEntry{}
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
	return !entry.Until.IsZero() && !before.Until.Equal(entry.Until)
}

// End forgets a hold, and returns it.
func (x *Holds) End(owner objects.Owner, key objects.ID) HoldEntry {
	x.mu.Lock()
	defer x.mu.Unlock()
	entry, found := x.byOwner[owner][key]
	if found {
		x.dropLocked(owner, key)
	}
	return entry
}

func (x *Holds) dropLocked(owner objects.Owner, key objects.ID) {
	delete(x.byOwner[owner], key)
	if len(x.byOwner[owner]) == 0 {
		delete(x.byOwner, owner)
	}
	x.showLocked(owner)
}

// Of returns the held objects of a ManagedResource, in no order.
func (x *Holds) Of(owner objects.Owner) []objects.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := make([]objects.ID, 0, len(x.byOwner[owner]))
	for key := range x.byOwner[owner] {
		keys = append(keys, key)
	}
	return keys
}

// Keep forgets the holds of objects that a ManagedResource no longer has.
func (x *Holds) Keep(owner objects.Owner, has func(objects.ID) bool) {
	for _, key := range x.Of(owner) {
		if key != ManagedResourceItself && !has(key) {
			x.End(owner, key)
		}
	}
}

// Forget forgets all holds of a ManagedResource.
func (x *Holds) Forget(owner objects.Owner) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byOwner, owner)
	x.showLocked(owner)
}

// HeldObject is an object, or a ManagedResource itself, whose hold has ended.
type HeldObject struct {
	Owner objects.Owner
	ID    objects.ID
}

// Due forgets the holds that have ended, and returns their objects and the time until the next hold ends; zero if
// there is none.
func (x *Holds) Due(now time.Time) (due []HeldObject, next time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, known := range x.byOwner {
		for key, entry := range known {
			wait := entry.CheckAt.Sub(now)
			if wait <= 0 {
				due = append(due, HeldObject{owner, key})
			} else if next == 0 || wait < next {
				next = wait
			}
		}
	}
	for _, ended := range due {
		x.dropLocked(ended.Owner, ended.ID)
	}
	return due, next
}

// showLocked updates the series of a ManagedResource.
func (x *Holds) showLocked(owner objects.Owner) {
	var ends []time.Time
	for _, entry := range x.byOwner[owner] {
		if !entry.Until.IsZero() {
			ends = append(ends, entry.Until)
		}
	}
	first := 0.0
	if len(ends) > 0 {
		first = float64(slices.MinFunc(ends, time.Time.Compare).Unix())
	}
	SetGauge(x.count, owner, float64(len(ends)))
	SetGauge(x.ends, owner, first)
}

// SetGauge sets the series of a ManagedResource, or deletes it if the number is zero.
func SetGauge(gauge *prometheus.GaugeVec, owner objects.Owner, n float64) {
	if n == 0 {
		gauge.DeleteLabelValues(owner.Namespace, owner.Name)
		return
	}
	gauge.WithLabelValues(owner.Namespace, owner.Name).Set(n)
}

// Reasons of Events about holds (MRF-14).
const (
	ReasonHoldBegan    = "HoldBegan"
	ReasonHoldEnded    = "HoldEnded"
	ReasonHoldReleased = "HoldReleased"
	ReasonHoldRefused  = "HoldRefused"
)
