package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notePartialLocked records the time to write an object again, if the API server kept only a part of the write; else
// zero.
func (t *table) notePartialLocked(r *record, again time.Time) {
	r.retryPartial = false
	if again.IsZero() && r.rare == nil {
		return
	}
	t.rareLocked(r).partial = again
	t.completeRareLocked(r)
}

// RetryKind marks the objects of a kind of which the API server kept only a part as out of sync, and notifies the
// subscribers, because the API server may keep more now.
func (rep *Repairs) RetryKind(gk schema.GroupKind) {
	rep.update(func(notify *notices) {
		for r := range rep.rares {
			if r.kind.Value() == gk && !r.rare.partial.IsZero() && rep.retryLocked(r) {
				r.notifyLocked(notify)
			}
		}
	})
}

// retryLocked marks an object to be written again, unless it is already out of sync and therefore checked anyway.
func (t *table) retryLocked(r *record) (retried bool) {
	if r.sync == outOfSync {
		return false
	}
	r.rare.partial = time.Time{}
	t.completeRareLocked(r)
	r.outOfSyncForAllLocked()
	r.retryPartial = true
	return true
}
