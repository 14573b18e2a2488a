package reflector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// patience limits the silence of a stream. API servers send a bookmark about once a minute to clients that request
// bookmarks. So a stream that is silent for twice that time is dead, even if it has not been closed.
const patience = 2 * time.Minute

var (
	// errSilent ends a stream so that it is resumed.
	errSilent = errors.New("nothing was heard for two minutes")
	// errSilentAgain ends a stream so that everything is listed anew: some API servers send no bookmarks for some
	// kinds, and only a list confirms that the known state of such a kind is current.
	errSilentAgain = errors.New("nothing was heard for two minutes, again")
)

// contact records when something was received of a kind: an event, a bookmark or a complete list. Opening a stream
// does not count, because a proxy may respond in place of the API server.
//
// Its invariant: silence is never less than the time since the API server has last confirmed the state of the kind.
type contact struct {
	clock clock.Clock
	// epoch is the time at which the follower was made; the others count from there. Nothing was received while last
	// is 0.
	epoch         time.Time
	started, last atomic.Int64
	// arrived is the time of the last event.
	arrived atomic.Int64
	// inVain counts the streams in a row on which nothing was received.
	inVain atomic.Int32
}

func newContact(c clock.Clock) *contact { return &contact{clock: c, epoch: c.Now()} }

// since is never 0, which means never.
func (c *contact) since() int64 { return int64(c.clock.Since(c.epoch)) + 1 }

func (c *contact) start() { c.started.Store(c.since()) }

// arrive records that an event arrives, whatever its content is.
func (c *contact) arrive() { c.arrived.Store(c.since()) }

// lag returns the time since the last event arrived.
func (c *contact) lag() time.Duration { return time.Duration(c.since() - c.arrived.Load()) }

// heard records that something was received.
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

// guard returns a context for a stream or a list that ends when nothing is received for too long.
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
