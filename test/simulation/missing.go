package simulation

import (
	"time"

	"github.com/espalier-project/espalier/test/fake"
)

// mostMissing is the longest time that an object may be missing while its ManagedResource says that it is healthy (MRB-40).
const mostMissing = 3 * time.Second

// disturbs are the steps after which instances do not hear of what happens, or cannot say so.
var disturbs = map[string]bool{
	"crash": true, "handover": true, "stall": true, "deny": true, "forbid": true, "down": true, "restore": true,
	"cut": true, "lose": true, "stale": true, "lag": true,
	"compact": true, "crd": true, "crd-delete": true, "class": true, "take-finalizer": true,
}

// noteMissing checks what ManagedResources say of an object that was deleted, once that must have been told.
func (w *world) noteMissing(c fake.Change) {
	if c.After != nil {
		delete(w.missingSince, c.Key)
		return
	}
	since := time.Now()
	w.missingSince[c.Key] = since
	within := w.toldWithin() // Here, as the lock is held.
	w.rebooting.Go(func() {
		time.Sleep(within)
		w.lock.Lock()
		defer w.lock.Unlock()
		if w.missingSince[c.Key].Equal(since) {
			w.checkTold(c.Key, since)
		}
	})
}

// toldWithin is the longest time until a missing object is told: the watch reports it, a request reads it once
// more, and the status is written after the write before.
func (w *world) toldWithin() time.Duration {
	const requests = 4
	return mostMissing + requests*w.newsWithin()
}

// checkTold is about an object that has been missing since a moment. Where requests fail, processes end or watches are
// not allowed, it takes as long as that lasts.
func (w *world) checkTold(key fake.Key, since time.Time) {
	if w.isDisturbed() {
		return
	}
	for at, mr := range w.source.AllLocked() {
		if at.GroupResource != managedResources || !contains(inventoryOf(mr), key) || !w.servesLocked(mr) {
			continue
		}
		if fake.Text(mr, "metadata", "deletionTimestamp") != "" || !w.concernsLocked(mr) {
			continue
		}
		if condition(mr, "ResourcesApplied") == "True" && condition(mr, "ResourcesHealthy") == "True" {
			w.violateLocked(missingIsTold, "%s is missing since %v, and %s says that it is healthy", key,
				since.Sub(w.begin), at.Name)
		}
	}
}
