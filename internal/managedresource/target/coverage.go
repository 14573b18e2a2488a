package target

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// activeWatch is the watch of a scope.
//
// Invariant: covered is true only while every change is reported: from the end of a complete list until a list or a
// watch fails, or a watch ends. A watch that continues from the last reported version covers the scope again. Only
// the present session changes covered, because requests of a former one may still be answered, and its watch may end
// late.
type activeWatch struct {
	users  int
	cancel context.CancelFunc
	stop   *time.Timer
	// served wakes a watch that waits for its kind; waits is true while it waits.
	served chan struct{}
	waits  atomic.Bool

	// listing prevents a list and an audit of the scope at the same time.
	listing chan struct{}

	mu sync.Mutex
	// session is the number of the current session.
	session int
	// restart ends the current follower of the scope, so that a new one begins.
	restart context.CancelFunc
	// listUntil is the time until which callers may wait for the next list: the first one, or the one after the end of
	// a watch.
	listUntil time.Time
	covered   bool
	// latest is the latest resource version that a list or the watch reported.
	latest string
	// failure is the error of the last attempt; nil while the watch covers the scope or has not failed yet.
	failure error
	// changed is closed, and replaced, when the state above changes.
	changed chan struct{}
}

func newActiveWatch() *activeWatch {
	return &activeWatch{served: make(chan struct{}, 1), listing: make(chan struct{}, 1), changed: make(chan struct{})}
}

// list calls do while no other list of the scope is under way.
func (a *activeWatch) list(ctx context.Context, do func() error) error {
	select {
	case a.listing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-a.listing }()
	return do()
}

func (a *activeWatch) notifyLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until the watch covers the scope; it returns the error of the last attempt if that failed.
func (a *activeWatch) await(ctx context.Context) error {
	for {
		a.mu.Lock()
		covered, failure, changed := a.covered, a.failure, a.changed
		a.mu.Unlock()
		if covered || failure != nil {
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (a *activeWatch) begins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listUntil = time.Now().Add(listedWithin)
}

// awaitUntil returns the time until which callers may wait for the next list.
func (a *activeWatch) awaitUntil() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.listUntil
}

func (a *activeWatch) covers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.covered
}

// lost records that the watch of the scope failed.
func (a *activeWatch) lost(failure error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lostLocked(failure)
}

func (a *activeWatch) lostLocked(failure error) {
	a.covered, a.failure = false, failure
	a.notifyLocked()
}

// watchSession is one attempt to follow a scope. Its reports count until the next session begins, or the scope is
// renewed.
type watchSession struct {
	*activeWatch
	number int
}

// follows begins a session; renew calls restart to end it.
func (a *activeWatch) follows(restart context.CancelFunc) watchSession {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restart = restart
	a.session++
	return watchSession{a, a.session}
}

// isCurrent reports whether the reports of the session count.
func (s watchSession) isCurrent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session == s.number
}

// apply changes the state of the watch, and wakes its waiters, if the session is current.
func (s watchSession) apply(change func()) (counts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != s.number {
		return false
	}
	change()
	s.notifyLocked()
	return true
}

// listed reports a complete list, and returns whether it counts.
func (s watchSession) listed(resourceVersion string) bool {
	return s.apply(func() {
		s.covered, s.failure, s.latest = true, nil, resourceVersion
	})
}

// lost records that a request failed.
func (s watchSession) lost(failure error) { s.apply(func() { s.covered, s.failure = false, failure }) }

// resumed records that a watch resumes from the last report, and returns a function to call when the watch has ended.
// The follower then opens the next watch at once, or lists the scope within seconds; its client may retry for longer
// before it reports a failure.
func (s watchSession) resumed() (ended func()) {
	s.apply(func() { s.covered, s.failure = true, nil })
	return func() {
		s.apply(func() {
			if s.covered {
				s.covered, s.listUntil = false, time.Now().Add(listedAgainWithin)
			}
		})
	}
}

// end records that the scope is no longer followed.
func (s watchSession) end() { s.apply(func() { s.covered = false }) }

// reached records the version of an event or a bookmark.
func (s watchSession) reached(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == s.number {
		s.latest = resourceVersion
	}
}

// renew ends the follower of the scope, if there is one, so that a new one begins at once. Reports of the current
// session no longer count.
func (a *activeWatch) renew() {
	a.mu.Lock()
	a.session++
	a.latest = ""
	a.lostLocked(nil)
	restart := a.restart
	a.mu.Unlock()
	if restart == nil {
		return
	}
	restart()
	a.wake()
}

func (a *activeWatch) version() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.latest
}
