package garbagecollector

import (
	"maps"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/marked"
)

const (
	// retryDeletions is the delay of the next run after the first failed deletions: long enough for an API server to
	// restart.
	retryDeletions = 5 * time.Minute
	// refusedPeriods is the longest back-off, in periods, for an object whose deletion fails repeatedly.
	refusedPeriods = 24
)

// object identifies an object to delete. An object that is recreated has another UID.
type object struct {
	marked.Key
	uid types.UID
}

// refusal is the record of a failed mark or deletion: the number of failures in a row, the last error, and the time
// of the next attempt.
type refusal struct {
	failures int
	err      error
	due      time.Time
}

// refusals are the back-offs of failed deletions. Each retry lists all holders of references twice, and an admission
// webhook of a tenant must not cause that as often as other retries.
//
// Only one run at a time uses them. They have only objects that the run has listed.
type refusals map[object]refusal

// split returns the objects that are due in this run, and the errors of those that are in back-off. It drops objects
// that are no longer listed.
func (r refusals) split(all []candidate, now time.Time) (due []candidate, left []error) {
	listed := make(map[object]bool, len(r))
	for _, c := range all {
		o := c.object()
		before, refused := r[o]
		listed[o] = refused
		if refused && now.Before(before.due) {
			left = append(left, before.err)
			continue
		}
		due = append(due, c)
	}
	maps.DeleteFunc(r, func(o object, _ refusal) bool { return !listed[o] })
	return due, left
}

// failed records that a deletion failed: the next attempts are in the next run, then after a period, and then after
// twice as long each time.
func (r refusals) failed(o object, err error, now time.Time, period time.Duration) {
	next := refusal{failures: r[o].failures + 1, err: err, due: now}
	if next.failures > 1 {
		next.due = now.Add(period * time.Duration(min(1<<min(next.failures-2, 10), refusedPeriods)))
	}
	r[o] = next
}

// first reports whether a deletion failed for the first time.
func (r refusals) first() bool {
	for _, refused := range r {
		if refused.failures == 1 {
			return true
		}
	}
	return false
}

// retries schedules the next run: soon after an incomplete list (COM-4), later after refused deletions.
type retries struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	// later is the delay after the last run, in nanoseconds; zero if a list was incomplete.
	later atomic.Int64
}

func newRetries() *retries { return &retries{TypedRateLimiter: kit.Retries()} }

// When implements workqueue.TypedRateLimiter.
func (r *retries) When(request reconcile.Request) time.Duration {
	if later := time.Duration(r.later.Load()); later > 0 {
		r.Forget(request)
		return later
	}
	return r.TypedRateLimiter.When(request)
}
