package targetcluster

import (
	"context"
	"sync"
	"time"
)

// activeWatch is the watch of a scope.
//
// Invariant: covered is true only while every change is told: from the end of a complete list on, and until a list or a watch
// fails. A watch that goes on from where everything was reported covers again.
type activeWatch struct {
	users  int
	cancel context.CancelFunc
	stop   *time.Timer
	// served wakes a watch that waits for its kind to be served.
	served chan struct{}

	// listing excludes that a list and an audit of the scope are under way at the same time.
	listing chan struct{}

	mu sync.Mutex
	// follower is the number of what follows the scope at present; what an earlier one still tells does not count.
	follower int
	// restart ends what follows the scope at present, so that it begins anew.
	restart context.CancelFunc
	// began is when the first list was about to be asked for; zero if it is not.
	began time.Time
	// complete is true if a list was reported completely since the kind is served where it is.
	complete bool
	covered  bool
	// latest is the latest resource version that a list or the watch told of.
	latest string
	// failed is true if nothing was reported completely yet, and the last attempt failed.
	failed bool
	// news is closed, and replaced, when any of these changes.
	news chan struct{}
}

func newActiveWatch() *activeWatch {
	return &activeWatch{served: make(chan struct{}, 1), listing: make(chan struct{}, 1), news: make(chan struct{})}
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
	close(a.news)
	a.news = make(chan struct{})
}

// await waits until the watch covers, has failed, or the context ends, and says whether it covers.
func (a *activeWatch) await(ctx context.Context, evenIfFailed bool) bool {
	for {
		a.mu.Lock()
		covered, failed, news := a.covered, a.failed, a.news
		a.mu.Unlock()
		if covered || failed && !evenIfFailed {
			return covered
		}
		select {
		case <-news:
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

// listed tells of a complete list.
func (a *activeWatch) listed(resourceVersion string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete, a.covered, a.failed, a.latest = true, true, false, resourceVersion
	a.tellLocked()
}

// lost tells that a request failed.
func (a *activeWatch) lost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.covered, a.failed = false, true
	a.tellLocked()
}

// resumed tells that a watch goes on from where the last report ended.
func (a *activeWatch) resumed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.covered, a.failed = a.complete, a.failed && !a.complete
	a.tellLocked()
}

// end tells that the scope is no longer followed.
func (a *activeWatch) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete, a.covered, a.failed = false, false, true
	a.tellLocked()
}

// follows tells how to end what follows the scope from now on, and returns its number.
func (a *activeWatch) follows(restart context.CancelFunc) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restart = restart
	a.follower++
	return a.follower
}

// heeds says whether what follows the scope under a number still does.
func (a *activeWatch) heeds(follower int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.follower == follower
}

// renew ends what follows the scope, and has it begin anew at once.
func (a *activeWatch) renew() {
	a.mu.Lock()
	restart := a.restart
	a.follower++
	a.latest = ""
	a.mu.Unlock()
	if restart == nil {
		return
	}
	restart()
	select {
	case a.served <- struct{}{}:
	default:
	}
}

// reached tells of an event or a bookmark.
func (a *activeWatch) reached(resourceVersion string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.latest = resourceVersion
}

func (a *activeWatch) version() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.latest
}
