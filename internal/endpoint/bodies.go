package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/espalier-project/espalier/internal/ratelimit"
)

const (
	// smallBody is more than kube-apiserver's SubjectAccessReviews ever have: names of at most 253 bytes, and groups and extra fields of a user,
	// which come from one request header or token.
	smallBody = 64 << 10
	// bodyPatience limits the arrival of a body once it is read; kube-apiserver sends it in one piece with the header.
	bodyPatience = 5 * time.Second
	// awaitedBodies bounds the small bodies that are awaited at once, and with smallBody the memory for them: 32 MiB
	// at most.
	awaitedBodies = 512
	// queuedBodies bounds the bodies of one size that wait for a place. None of them is read, so that each takes one
	// stream's window at most: 16 MiB. One API server has 200 changes under way at most, by default.
	queuedBodies = 256
)

// Size bounds the memory and the CPU time of bodies up to one size. Bodies of different sizes do not wait for one
// another, unless they share Turns.
type Size struct {
	// Bytes is the maximum length of such a body, and Places the number of them in memory at once.
	Bytes  int64
	Places int
	// Grace limits the arrival of a body before it can be given up for another one.
	Grace time.Duration
	// BytesPerSecond is the speed of using one place: a body of a megabyte at 4 MiB a second keeps its place for a
	// quarter of one. 0 means no bound.
	BytesPerSecond int
	// Turns has one turn at a time for work on these bodies.
	Turns *ratelimit.Turns
}

// Bodies reads the bodies of requests. A body that arrives slowly, or is large, or is costly to decode holds up no smaller body:
//   - A small body that arrives at once is always read, regardless of how many bodies are awaited. If too many are, the body that has been awaited longest is
//     given up.
//   - A larger body waits for a place before it is read: kube-apiserver keeps it, and windows.go explains why it holds up no other request meanwhile. At most
//     awaitedBodies small bodies and Size.Places bodies of each size are in memory.
//   - Of the bodies in places of a size, one is worked on at a time (ratelimit.Turns), so that processors are left for small bodies. A review that reads
//     from an API server meanwhile leaves its turn to others.
type Bodies struct {
	patience time.Duration
	awaited  buffer
	sizes    []*size
}

type size struct {
	Size
	buffer
}

// NewBodies returns one of a process's own, for bodies of these sizes, the smallest first.
func NewBodies(sizes ...Size) *Bodies {
	b := &Bodies{patience: bodyPatience, awaited: buffer{limit: awaitedBodies}}
	for _, s := range sizes {
		b.sizes = append(b.sizes, &size{Size: s, buffer: buffer{limit: s.Places, grace: s.Grace, mostQueued: queuedBodies}})
	}
	return b
}

// sizeOf returns the size of a body by its header; a body without a length may be as large as the limit.
func (b *Bodies) sizeOf(length, limit int64) *size {
	if length < 0 {
		length = limit
	}
	at := slices.IndexFunc(b.sizes, func(s *size) bool { return length <= s.Bytes })
	if at < 0 {
		at = len(b.sizes) - 1
	}
	return b.sizes[at]
}

// leaveAfter gives a place back, when as much time has passed as the body may have taken.
func (s *size) leaveAfter(p *place, read int) {
	if s.BytesPerSecond == 0 {
		s.leave(p)
		return
	}
	time.AfterFunc(time.Duration(read)*time.Second/time.Duration(s.BytesPerSecond), func() { s.leave(p) })
}

var (
	errGivenUp  = WithStatus(http.StatusServiceUnavailable, errors.New("too many bodies are awaited; this one came too slowly"))
	errTooLarge = WithStatus(http.StatusServiceUnavailable, errors.New("too many large reviews at once"))
)

// Read reads a body of at most limit bytes. If the body is costly to decode Read waits for its place and for its turn, until the context ends:
// the context that it returns carries the turn. Until release is called the body counts as one that is there.
func (b *Bodies) Read(ctx context.Context, w http.ResponseWriter, request *http.Request, into *bytes.Buffer, limit int64) (context.Context, func(), error) {
	if request.ContentLength > limit {
		return ctx, nil, tooLarge(limit)
	}
	g := &admitted{response: http.NewResponseController(w)}
	defer g.end()
	if request.ContentLength <= smallBody {
		done, err := b.readSmall(request, into, g)
		if err != nil || done {
			return ctx, func() {}, err
		}
	}
	s := b.sizeOf(request.ContentLength, limit)
	large := s.wait(ctx, g)
	if large == nil {
		return ctx, nil, errTooLarge
	}
	err := b.readLarge(request, into, limit, g)
	read := into.Len()
	if err != nil {
		s.leaveAfter(large, read)
		return ctx, nil, err
	}
	ctx, end, err := s.Turns.Begin(ctx)
	if err != nil {
		s.leaveAfter(large, read)
		return ctx, nil, errTooLarge
	}
	return ctx, func() {
		end()
		s.leaveAfter(large, read)
	}, nil
}

// readSmall reads a body that is small, or whose length is unknown, and reports whether that is all: it is not if the
// body is large or no JSON.
func (b *Bodies) readSmall(request *http.Request, into *bytes.Buffer, g *admitted) (bool, error) {
	defer b.awaiting(g).Stop()
	awaited := b.awaited.join(g)
	if awaited == nil {
		return false, errGivenUp
	}
	defer b.awaited.leave(awaited)
	_, err := into.ReadFrom(io.LimitReader(request.Body, smallBody+1))
	switch {
	case err != nil:
		return false, g.failed(err)
	case into.Len() > smallBody || !isObject(into.Bytes()):
		return false, g.given()
	case !g.complete():
		return false, g.given()
	}
	return true, nil
}

// readLarge reads the rest of a body that has a place.
func (b *Bodies) readLarge(request *http.Request, into *bytes.Buffer, limit int64, g *admitted) error {
	defer b.awaiting(g).Stop()
	if rest := request.ContentLength - int64(into.Len()); rest > 0 { // Growing step by step would take twice as much.
		into.Grow(int(rest) + bytes.MinRead)
	}
	if _, err := into.ReadFrom(io.LimitReader(request.Body, limit+1-int64(into.Len()))); err != nil {
		return g.failed(err)
	}
	switch {
	case !g.complete():
		return g.given()
	case int64(into.Len()) > limit:
		return tooLarge(limit)
	case into.Len() > smallBody && !isObject(into.Bytes()):
		return WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("only JSON may have more than %d bytes", smallBody))
	}
	return nil
}

// awaiting gives a body up after the time that it may take.
func (b *Bodies) awaiting(g *admitted) *time.Timer {
	return time.AfterFunc(b.patience, func() {
		g.giveUp(WithStatus(http.StatusRequestTimeout, fmt.Errorf("the body did not come within %s", b.patience)))
	})
}

func tooLarge(limit int64) error {
	return WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("request entity is too large; limit is %d bytes", limit))
}

// isObject reports whether a body is a JSON object, or nothing, and no other form of YAML.
func isObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) == 0 || body[0] == '{'
}
