package target

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// activeWatch is the watch of a scope.
//
// Invariant: covered is true only while every change is reported: from the end of a complete list on, and until a list
// or a watch fails, or a watch ends. A watch that continues from the last reported version covers the scope again. Only
// the present session changes covered: requests that it has given up may still be answered, and the former watch may
// end late.
type activeWatch struct {
	users  int
	cancel context.CancelFunc
	stop   *time.Timer
	// served wakes a watch that waits for its kind to be served; waits is true while it does.
	served chan struct{}
	waits  atomic.Bool

	// listing excludes that a list and an audit of the scope are under way at the same time.
	listing chan struct{}

	mu sync.Mutex
	// watchSession is the number of the one that is heeded.
	watchSession int
	// restart ends what follows the scope at present, so that it begins anew.
	restart context.CancelFunc
	// began is when the first list was about to be asked for; zero if it is not.
	began time.Time
	// complete is true if a list was reported completely since the kind is served where it is.
	complete bool
	covered  bool
	// opened is the number of the watch that was opened last.
	opened int
	// latest is the latest resource version that a list or the watch told of.
	latest string
	// failed is true if nothing was reported completely yet, and the last attempt failed.
	failed bool
	// doubtful is true if the next watch is to be rechecked: it is the first one after a list, or the last one did not
	// last until its timeout.
	doubtful bool
	// recheckPause is the pause before the next recheck.
	recheckPause time.Duration
	// news is closed, and replaced, when any of these changes.
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

func (a *activeWatch) tellLocked() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// await waits until the watch covers, was listed and has ended, has failed, or the context ends, and reports whether it
// covers.
func (a *activeWatch) await(ctx context.Context) bool {
	for {
		a.mu.Lock()
		covered, failed, ended, changed := a.covered, a.failed, a.endedLocked(), a.changed
		a.mu.Unlock()
		if covered || ended || failed {
			return covered
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (a *activeWatch) begins() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.began = time.Now()
}

// firstListUntil is until when the first list may be waited for.
func (a *activeWatch) firstListUntil() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.began.Add(listedWithin)
}

func (a *activeWatch) covers() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.covered
}

// endedLocked reports whether all was reported up to the end of a watch, and the next one is still to be opened.
func (a *activeWatch) endedLocked() bool { return a.complete && !a.covered && !a.failed }

// lost tells that the scope can't be followed.
func (a *activeWatch) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lostLocked()
}

func (a *activeWatch) lostLocked() {
	a.covered, a.failed, a.doubtful = false, true, true
	a.tellLocked()
}

// watchSession follows a scope. Its news count until the next one begins, or the scope is renewed.
type watchSession struct {
	*activeWatch
	number int
}

// follows tells how to end what follows the scope from now on.
func (a *activeWatch) follows(restart context.CancelFunc) watchSession {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restart = restart
	a.watchSession++
	return watchSession{a, a.watchSession}
}

// isCurrent reports whether what the watchSession tells counts.
func (f watchSession) isCurrent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watchSession == f.number
}

// tells changes what is known, and wakes those who wait for that, if the watchSession is heeded.
func (f watchSession) apply(change func()) (heeded bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchSession != f.number {
		return false
	}
	change()
	f.tellLocked()
	return true
}

// listed reports a complete list, and reports whether it counts.
func (f watchSession) listed(resourceVersion string) bool {
	return f.apply(func() {
		f.complete, f.covered, f.failed, f.doubtful, f.latest = true, true, false, true, resourceVersion
	})
}

// lost tells that a request failed.
func (f watchSession) lost() { f.apply(func() { f.covered, f.failed, f.doubtful = false, true, true }) }

// resumed tells that a watch goes on from where the last report ended, and returns whether the watch is to be
// rechecked. The function that it returns tells that the watch has ended. The follower mostly opens the next one at
// once, but a client may try that again for a while before it says that it failed.
func (f watchSession) resumed() (doubtful bool, ended func(atTimeout bool)) {
	number := 0
	f.apply(func() {
		f.opened++
		number = f.opened
		f.covered, f.failed = f.complete, f.failed && !f.complete
		doubtful, f.doubtful = f.doubtful, false
	})
	return doubtful, func(atTimeout bool) {
		f.apply(func() {
			f.covered = f.covered && f.opened != number
			f.doubtful = f.doubtful || !atTimeout
		})
	}
}

// end tells that the scope is no longer followed.
func (f watchSession) end() { f.apply(func() { f.complete, f.covered, f.failed = false, false, true }) }

// reached reports an event or a bookmark.
func (f watchSession) reached(resourceVersion string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchSession == f.number {
		f.latest = resourceVersion
	}
}

// renew ends what follows the scope, and has it begin anew at once.
func (a *activeWatch) renew() {
	a.giveUp()
	a.beginAnew()
}

// giveUp has what follows the scope not be heeded any more. It goes on until the scope is begun anew.
func (a *activeWatch) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchSession++
	a.latest = ""
	a.complete = false
	a.lostLocked()
}

// beginAnew ends what follows the scope, if it was ever followed, and has it begin at once.
func (a *activeWatch) beginAnew() {
	a.mu.Lock()
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
