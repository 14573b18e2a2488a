package reflector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// patience limits the silence of a stream. API servers send a bookmark about once a minute to clients that ask for
// bookmarks, so that a stream which is silent for twice that time is dead, even if it has not been closed.
const patience = 2 * time.Minute

var (
	// errSilent ends a stream so that it is opened anew where it was.
	errSilent = errors.New("nothing was heard for two minutes")
	// errSilentAgain ends it so that everything is listed anew: some API servers send no bookmarks for some kinds, and
	// only a list says that what is known of such a kind is still so.
	errSilentAgain = errors.New("nothing was heard for two minutes, again")
)

// contact knows when something was heard of a kind: an event, a bookmark or a whole list. A stream that could be opened
// is none: what stands between here and the API server may answer for it.
//
// Its invariant: silence never says less than the time since the API server has last confirmed the state of the kind.
type contact struct {
	clock clock.Clock
	// epoch is the time at which the follower was made; the others count from there. Nothing was heard while last is
	// 0.
	epoch         time.Time
	started, last atomic.Int64
	// arrived is the time of the last event.
	arrived atomic.Int64
	// inVain counts the streams in a row of which nothing was heard.
	inVain atomic.Int32
}

func newContact(c clock.Clock) *contact { return &contact{clock: c, epoch: c.Now()} }

// since is never 0, which means never.
func (c *contact) since() int64 { return int64(c.clock.Since(c.epoch)) + 1 }

func (c *contact) start() { c.started.Store(c.since()) }

// arrive notes that an event comes, whatever it says.
func (c *contact) arrive() { c.arrived.Store(c.since()) }

// lag returns the time since the last event came.
func (c *contact) lag() time.Duration { return time.Duration(c.since() - c.arrived.Load()) }

// heard notes that something was heard.
func (c *contact) heard() {
	c.last.Store(c.since())
	c.inVain.Store(0)
}

// silence returns the time since the last event; before the first one the time since the start, and before that 0.
func (c *contact) silence() time.Duration {
	last := max(c.last.Load(), c.started.Load())
	if last == 0 {
		return 0
	}
	return time.Duration(c.since() - last)
}

// guard returns a context for a stream or a list that ends when nothing is heard for too long.
func (c *contact) guard(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go c.watch(ctx, end)
	return ctx, end
}

func (c *contact) watch(ctx context.Context, end context.CancelCauseFunc) {
	began := c.since()
	timer := c.clock.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		quiet := time.Duration(c.since() - max(began, c.last.Load()))
		if quiet < patience {
			timer.Reset(patience - quiet)
			continue
		}
		if c.inVain.Add(1) > 1 {
			end(errSilentAgain)
		} else {
			end(errSilent)
		}
		return
	}
}
