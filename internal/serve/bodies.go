package serve

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// smallBody is more than kube-apiserver's reviews ever have: names of at most 253 bytes, and groups and extra fields of a user, which
	// come from one request header or token.
	smallBody = 64 << 10
	// bodyPatience is how long a body may take to come; kube-apiserver sends it in one piece with the header.
	bodyPatience = 5 * time.Second
	// awaitedBodies bounds how many bodies are awaited at once, and with smallBody the memory for them: 32 MiB at most.
	awaitedBodies = 512
	// largeGrace is how long a large body may take before it can be given up for another one: at that rate it has 30 MiB a second.
	largeGrace = 250 * time.Millisecond
	// largeBodies bounds how many bodies there are at once that are larger or no JSON: 48 MiB of reviews at most.
	largeBodies = 16
)

// Bodies reads the bodies of requests. One that comes slowly, or is large, or is costly to decode holds up no other one:
//   - A body that comes at once is always read, however many are awaited. Where there are too many the one that has been awaited longest is
//     given up.
//   - At most awaitedBodies of at most smallBody bytes and largeBodies of any size are in memory.
//   - Of what is costly to decode at most a few are worked on at a time; the others wait for a place and for their turn, so that processors
//     are left for small ones. Where nobody has reason to send them, a Pace bounds what they take of the processors.
type Bodies struct {
	patience       time.Duration
	awaited, large crowd
	costly         chan struct{}
	pace           Pace
}

// NewBodies returns one of a process's own, which works on so many costly bodies at a time.
func NewBodies(costly int) *Bodies {
	return &Bodies{patience: bodyPatience, awaited: crowd{limit: awaitedBodies}, large: crowd{limit: largeBodies, grace: largeGrace}, costly: make(chan struct{}, costly)}
}

// Pace bounds what large bodies, and those that are no JSON, may take of the processors. Those that wait longer than bodies are awaited are
// refused.
type Pace struct {
	// Large is how many there are at once, and Grace how long one may take before it can be given up for another one.
	Large int
	Grace time.Duration
	// BytesPerSecond is how fast one place is used: who has read a megabyte at 4 MiB a second keeps it for a quarter of one. 0 means no bound.
	BytesPerSecond int
	// Rest is how long nothing costly is worked on after a body, as a multiple of the time that it took: with 7 an eighth of a processor.
	Rest int
}

// Paced sets the pace; it is called before the first body is read.
func (b *Bodies) Paced(p Pace) *Bodies {
	b.pace, b.large.limit, b.large.grace = p, p.Large, p.Grace
	return b
}

// leaveLarge gives a place back, when as much time has passed as the body may have taken.
func (b *Bodies) leaveLarge(large *place, read int) {
	var kept time.Duration
	if b.pace.BytesPerSecond > 0 {
		kept = time.Duration(read) * time.Second / time.Duration(b.pace.BytesPerSecond)
	}
	later(kept, func() { b.large.leave(large) })
}

// worked gives the turn to the next one.
func (b *Bodies) worked(took time.Duration) {
	later(took*time.Duration(b.pace.Rest), func() { <-b.costly })
}

func later(wait time.Duration, do func()) {
	if wait <= 0 {
		do()
		return
	}
	time.AfterFunc(wait, do)
}

// statusError is an error with the HTTP status that belongs to it.
type statusError struct {
	code int
	error
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus gives an error the HTTP status that it is answered with; without one it is 500.
func WithStatus(code int, err error) error { return &statusError{code, err} }

// StatusOf returns the status of an error.
func StatusOf(err error) int {
	if known := (*statusError)(nil); errors.As(err, &known) {
		return known.code
	}
	return http.StatusInternalServerError
}

var (
	errGivenUp  = WithStatus(http.StatusServiceUnavailable, errors.New("too many bodies are awaited; this one came too slowly"))
	errTooLarge = WithStatus(http.StatusServiceUnavailable, errors.New("too many large reviews at once"))
)

// Read reads a body of at most limit bytes. Until release is called it counts as one that is there. If the body is costly to decode Read
// waits for its turn, and release ends that.
func (b *Bodies) Read(w http.ResponseWriter, request *http.Request, into *bytes.Buffer, limit int64) (release func(), err error) {
	if request.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	g := &guest{response: http.NewResponseController(w), gone: make(chan struct{})}
	defer g.end()
	timer := time.AfterFunc(b.patience, func() {
		g.giveUp(WithStatus(http.StatusRequestTimeout, fmt.Errorf("the body did not come within %s", b.patience)))
	})
	defer timer.Stop()
	awaited := b.awaited.join(g)
	if awaited == nil {
		return nil, errGivenUp
	}
	_, err = into.ReadFrom(io.LimitReader(request.Body, smallBody+1))
	switch {
	case err != nil:
		b.awaited.leave(awaited)
		return nil, g.failed(err)
	case into.Len() <= smallBody && isObject(into.Bytes()):
		b.awaited.leave(awaited)
		if !g.settle() {
			return nil, g.failed(nil)
		}
		return func() {}, nil
	}
	// It is awaited until there is a place for it, and so among those that may be given up.
	large := b.large.wait(g)
	b.awaited.leave(awaited)
	if large == nil {
		return nil, errTooLarge
	}
	err = b.readLarge(request, into, limit, g)
	read := into.Len()
	if err != nil {
		b.leaveLarge(large, read)
		return nil, err
	}
	began := time.Now()
	return func() {
		b.worked(time.Since(began))
		b.leaveLarge(large, read)
	}, nil
}

// readLarge reads the rest of a body that has a place, and waits for its turn.
func (b *Bodies) readLarge(request *http.Request, into *bytes.Buffer, limit int64, g *guest) error {
	if rest := request.ContentLength - int64(into.Len()); rest > 0 { // Growing step by step would take twice as much.
		into.Grow(int(rest) + bytes.MinRead)
	}
	if _, err := into.ReadFrom(io.LimitReader(request.Body, limit+1-int64(into.Len()))); err != nil {
		return g.failed(err)
	}
	switch {
	case !g.settle():
		return g.failed(nil)
	case int64(into.Len()) > limit:
		return tooLarge(limit)
	case into.Len() > smallBody && !isObject(into.Bytes()):
		return WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("only JSON may have more than %d bytes", smallBody))
	}
	return b.turn(request.Context())
}

// turn waits until a costly body may be worked on.
func (b *Bodies) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	select {
	case b.costly <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errTooLarge
	}
}

func tooLarge(limit int64) error {
	return WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("request entity is too large; limit is %d bytes", limit))
}

// isObject says whether a body is a JSON object, or nothing, and no other form of YAML.
func isObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) == 0 || body[0] == '{'
}

// crowd is a bounded number of bodies. When it is full the one that has been awaited longest has to go, if that is longer than the grace;
// those that are there stay.
type crowd struct {
	limit int
	grace time.Duration

	mu sync.Mutex
	// awaited has those that may be given up, the oldest first; count is all of them.
	awaited list.List
	count   int
	// left is closed when one leaves, if anybody waits for that.
	left chan struct{}
}

// place is that of a body in a crowd. Its fields are guarded by the crowd's mutex.
type place struct {
	*guest
	element *list.Element
	since   time.Time
	counted bool
}

// join returns a place if there is one, or one could be made.
func (c *crowd) join(g *guest) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joinLocked(g)
}

func (c *crowd) joinLocked(g *guest) *place {
	if c.count >= c.limit && !c.displaceLocked() {
		return nil
	}
	c.count++
	p := &place{guest: g, since: time.Now(), counted: true}
	p.element = c.awaited.PushBack(p)
	return p
}

// wait waits for a place as long as the body is not given up.
func (c *crowd) wait(g *guest) *place {
	for {
		c.mu.Lock()
		p := c.joinLocked(g)
		if c.left == nil {
			c.left = make(chan struct{})
		}
		left := c.left
		c.mu.Unlock()
		if p != nil {
			return p
		}
		late := time.NewTimer(c.grace)
		select {
		case <-left:
		case <-late.C: // Another one may have been awaited for too long by now.
		case <-g.gone:
			return nil
		}
		late.Stop()
	}
}

// displaceLocked gives up the oldest body that is still awaited.
func (c *crowd) displaceLocked() bool {
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

func (c *crowd) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.counted {
		return
	}
	c.awaited.Remove(p.element)
	c.count--
	p.counted = false
	if c.left != nil {
		close(c.left)
		c.left = nil
	}
}

// guest is a body in crowds. Its mutex orders giving up and having come: once it is settled its connection is left alone.
type guest struct {
	response *http.ResponseController
	// gone is closed when it is given up.
	gone chan struct{}

	mu      sync.Mutex
	settled bool
	reason  error
}

// giveUp ends the reading of a body that has not come yet.
func (g *guest) giveUp(reason error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.settled {
		return false
	}
	if g.reason == nil {
		g.reason = reason
		close(g.gone)
		// What cannot be given up, as in tests without a connection, goes on.
		_ = g.response.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

// settle says that the body is there, unless it was given up.
func (g *guest) settle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason == nil {
		g.settled = true
	}
	return g.settled
}

// end says that the reading is over, however it ended: the connection is then the server's, which may be done with it.
func (g *guest) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settled = true
}

// failed returns why a body could not be read.
func (g *guest) failed(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return g.reason
	}
	return WithStatus(http.StatusBadRequest, err)
}
