package endpoint

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"
)

// buffer bounds the bodies of a size. When it is full, the body that has been awaited longest is given up, if that is
// longer than the grace; bodies that have arrived stay. Requests that wait for a place get one in their order, before
// their bodies are read.
type buffer struct {
	limit int
	grace time.Duration
	// mostQueued bounds the requests that wait for a place.
	mostQueued int

	mu sync.Mutex
	// awaited has those that may be given up, the oldest first; count is all of them.
	awaited list.List
	count   int
	// waiting has a channel for each request that waits for a place, the oldest first.
	waiting list.List
}

// place is the place of a body in a buffer. Its fields are guarded by the buffer's mutex.
type place struct {
	*admitted
	element *list.Element
	since   time.Time
	counted bool
}

// join returns a place if there is one, or one could be made.
func (c *buffer) join(g *admitted) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joinLocked(g)
}

func (c *buffer) joinLocked(g *admitted) *place {
	if c.count >= c.limit && !c.displaceLocked() {
		return nil
	}
	c.count++
	p := &place{admitted: g, since: time.Now(), counted: true}
	p.element = c.awaited.PushBack(p)
	return p
}

// wait waits for a place until the context ends.
func (c *buffer) wait(ctx context.Context, g *admitted) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting.Len() == 0 {
		if p := c.joinLocked(g); p != nil {
			return p
		}
	}
	if c.waiting.Len() >= c.mostQueued {
		return nil
	}
	free := make(chan struct{}, 1)
	mine := c.waiting.PushBack(free)
	defer c.wakeLocked() // There may be another place, or this one was not taken.
	defer c.waiting.Remove(mine)
	for {
		c.mu.Unlock()
		late := time.NewTimer(max(c.grace, time.Millisecond))
		select {
		case <-free:
		case <-late.C: // The oldest body may exceed its grace now.
		case <-ctx.Done():
		}
		late.Stop()
		c.mu.Lock()
		if ctx.Err() != nil {
			return nil
		}
		if c.waiting.Front() != mine {
			continue
		}
		if p := c.joinLocked(g); p != nil {
			return p
		}
	}
}

// wakeLocked wakes the oldest request that waits for a place.
func (c *buffer) wakeLocked() {
	first := c.waiting.Front()
	if first == nil || c.count >= c.limit {
		return
	}
	select {
	case first.Value.(chan struct{}) <- struct{}{}:
	default: // Its wake-up is pending already.
	}
}

// displaceLocked gives up the oldest body that is still awaited.
func (c *buffer) displaceLocked() bool {
	for oldest := c.awaited.Front(); oldest != nil; oldest = c.awaited.Front() {
		p := oldest.Value.(*place)
		if time.Since(p.since) < c.grace {
			return false
		}
		c.awaited.Remove(oldest)
		if p.giveUp(errGivenUp) {
			// It leaves in a moment, and must not be counted twice.
			c.count--
			p.counted = false
			return true
		}
	}
	return false
}

func (c *buffer) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.counted {
		return
	}
	c.awaited.Remove(p.element)
	c.count--
	p.counted = false
	c.wakeLocked()
}

// admitted is a body in buffers. Its mutex orders giving up and completion: once it is completed, its connection is
// left alone.
type admitted struct {
	response *http.ResponseController

	mu        sync.Mutex
	completed bool
	reason    error
}

// giveUp ends the reading of a body that has not come yet.
func (g *admitted) giveUp(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.completed {
		return false
	}
	if g.reason == nil {
		g.reason = reason
		// A request that cannot be given up, as in tests without a connection, goes on.
		_ = g.response.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

// complete marks the body as read, unless it was given up.
func (g *admitted) complete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason == nil {
		g.completed = true
	}
	return g.completed
}

// end marks the reading as over, however it ended: the connection is then the server's, which may be done with it.
func (g *admitted) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.completed = true
}

// given returns why a body was given up, and nil if it was not.
func (g *admitted) given() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

// failed returns why a body could not be read.
func (g *admitted) failed(err error) error {
	if given := g.given(); given != nil {
		return given
	}
	return WithStatus(http.StatusBadRequest, err)
}
