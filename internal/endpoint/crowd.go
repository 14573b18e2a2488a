package endpoint

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"
)

// buffer bounds the bodies of a size in memory. When it is full, the oldest body that is still arriving is dropped,
// if it has exceeded the grace; bodies that have arrived stay. Requests that wait for a place get one in their order,
// before their bodies are read.
type buffer struct {
	limit int
	grace time.Duration
	// mostQueued is the maximum number of requests that wait for a place.
	mostQueued int

	mu sync.Mutex
	// awaited are the bodies that may be dropped, the oldest first; count is the number of all.
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

// join returns a place if one is free, or can be freed.
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
	defer c.wakeLocked() // Another place may be free, or this one was not taken.
	defer c.waiting.Remove(mine)
	for {
		c.mu.Unlock()
		late := time.NewTimer(max(c.grace, time.Millisecond))
		select {
		case <-free:
		case <-late.C: // The oldest body may have exceeded its grace.
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

// displaceLocked drops the oldest body that is still arriving, if it has exceeded the grace.
func (c *buffer) displaceLocked() bool {
	for oldest := c.awaited.Front(); oldest != nil; oldest = c.awaited.Front() {
		p := oldest.Value.(*place)
		if time.Since(p.since) < c.grace {
			return false
		}
		c.awaited.Remove(oldest)
		if p.giveUp(errGivenUp) {
			// Its request will call leave, which must not count it twice.
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

// admitted is a body in buffers. Its mutex orders giveUp and complete: after complete, the connection's deadline is
// not changed.
type admitted struct {
	response *http.ResponseController

	mu        sync.Mutex
	completed bool
	reason    error
}

// giveUp stops reading a body that has not arrived yet.
func (g *admitted) giveUp(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.completed {
		return false
	}
	if g.reason == nil {
		g.reason = reason
		// In tests without a connection this fails, and the request continues.
		_ = g.response.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

// complete marks the body as read, unless it was dropped.
func (g *admitted) complete() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason == nil {
		g.completed = true
	}
	return g.completed
}

// end marks the reading as over, with any result: then the connection belongs to the server, which may have closed
// it.
func (g *admitted) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.completed = true
}

// given returns the reason why a body was dropped, or nil.
func (g *admitted) given() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason
}

// failed returns the reason why a body could not be read.
func (g *admitted) failed(err error) error {
	if given := g.given(); given != nil {
		return given
	}
	return WithStatus(http.StatusBadRequest, err)
}
