package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// notePartialLocked takes from a verification whether the API server kept the whole of what was written.
func (l *Tracker) notePartialLocked(r *record, again time.Time) {
	r.retryPartial = false
	if again.IsZero() {
		delete(l.partial, r)
		return
	}
	l.partial[r] = again
}

// RetryKind puts the objects of a kind into doubt of which the API server kept only a part, and notifies the
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

// RetryDue puts the objects into doubt of which the API server kept only a part, and whose time has come. It notifies
// no subscriber: the caller looks for objects in doubt next. An object that is being written is left for another time.
func (l *Tracker) RetryDue(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, due := range l.partial {
		if r.writes == 0 && !due.After(now) {
			l.retryLocked(r)
		}
	}
}

// retryLocked marks an object to be written once more. An object that is in doubt already is read anyway.
func (l *Tracker) retryLocked(r *record) (doubted bool) {
	if r.certainty == stale {
		return false
	}
	delete(l.partial, r)
	r.certainty, r.retryPartial = stale, true
	r.owners[len(r.owners)-1].dirty[r] = struct{}{}
	return true
}

// Retries reports whether an object, as it was read, is in doubt only because it is to be written once more, and its
// desired state is the same as before: it is the object on record, and no writer has changed it since.
func (l *Tracker) Retries(read Observation, desired uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.findLocked(read.Key)
	return r != nil && r.retryPartial && r.desired == desired && r.uid == read.UID &&
		(r.resourceVersion == read.ResourceVersion || read.Digest != 0 && r.digest == read.Digest)
}
