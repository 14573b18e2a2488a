package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notePartialLocked records the time to write an object again, if the API server kept only a part of the write; else
// zero.
func (l *Tracker) notePartialLocked(r *record, again time.Time) {
	r.retryPartial = false
	if again.IsZero() {
		delete(l.partial, r)
		return
	}
	l.partial[r] = again
}

// RetryKind marks the objects of a kind of which the API server kept only a part as stale, and notifies the
// subscribers: it may keep more now.
func (l *Tracker) RetryKind(gk schema.GroupKind) {
	l.update(func(notify *notices) {
		for r := range l.partial {
			if r.kind.Value() == gk && l.retryLocked(r) {
				r.tellLocked(notify)
			}
		}
	})
}

// retryLocked marks an object to be written once more. An object that is stale already is read anyway.
func (l *Tracker) retryLocked(r *record) (doubted bool) {
	if r.certainty == stale {
		return false
	}
	delete(l.partial, r)
	r.certainty, r.retryPartial = stale, true
	r.owners[len(r.owners)-1].dirty[r] = struct{}{}
	return true
}

// Retries reports whether an object, as it was read, is stale only because its write is retried with the same desired
// state: it is the object on record, and no writer has changed it since.
func (l *Tracker) Retries(read Observation, desired uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(read.ID)
	return r != nil && r.retryPartial && r.desired == desired && r.uid == read.UID &&
		(r.resourceVersion == read.ResourceVersion || read.Digest != 0 && r.digest == read.Digest)
}
