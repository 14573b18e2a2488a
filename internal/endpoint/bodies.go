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
	// smallBody is more than kube-apiserver's SubjectAccessReviews ever have: names of at most 253 bytes, and groups
	// and extra fields of a user, which are from one request header or token.
	smallBody = 64 << 10
	// bodyPatience is the time that a body has to arrive, from the start of reading; kube-apiserver sends it together
	// with the header.
	bodyPatience = 5 * time.Second
	// awaitedBodies bounds the small bodies that are awaited at once, and with smallBody their memory: 32 MiB at
	// most.
	awaitedBodies = 512
	// queuedBodies bounds the bodies of one size that wait for a place. None of them is read, so each takes at most
	// one stream's window: 16 MiB. By default one API server has at most 200 changes in progress.
	queuedBodies = 256
)

// Size bounds the memory and the CPU time of bodies up to one size. Bodies of different sizes do not wait for one
// another, unless they share Turns.
type Size struct {
	// Bytes is the maximum length of such a body, and Places the maximum number of them in memory.
	Bytes  int64
	Places int
	// Grace is the time that a body has to arrive before it can be dropped for another one.
	Grace time.Duration
	// BytesPerSecond limits the use of one place: at 4 MiB per second, a body of a megabyte keeps its place for a
	// quarter of a second. 0 means no limit.
	BytesPerSecond int
	// Turns lets one of these bodies at a time be processed.
	Turns *ratelimit.Turns
}

// Bodies reads the bodies of requests. A body that arrives slowly, or is large, or is costly to decode does not block
// smaller ones:
//   - A small body that arrives at once is always read, regardless of the number of awaited bodies. If there are
//     too many, the oldest one is dropped.
//   - A larger body waits for a place before it is read: kube-apiserver keeps it, and the comment on windows in
//     server.go explains why it does not block other requests. At most awaitedBodies small bodies and Size.Places
//     bodies of each size are in memory.
//   - Of the bodies of a size in memory, one at a time is processed (ratelimit.Turns), so that processors are left
//     for small bodies. A review that reads from an API server gives up its turn meanwhile.
type Bodies struct {
	patience time.Duration
	awaited  buffer
	sizes    []*size
}

type size struct {
	Size
	buffer
}

// NewBodies returns a Bodies for these sizes, the smallest first.
func NewBodies(sizes ...Size) *Bodies {
	b := &Bodies{patience: bodyPatience, awaited: buffer{limit: awaitedBodies}}
	for _, s := range sizes {
		b.sizes = append(b.sizes, &size{Size: s, buffer: buffer{limit: s.Places, grace: s.Grace, mostQueued: queuedBodies}})
	}
	return b
}

// sizeOf returns the size for a body according to its header; a body without a length counts as one of the limit.
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

// leaveAfter frees a place after the time that BytesPerSecond requires for the bytes read.
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

// Read reads a body of at most limit bytes. If the body is costly to decode, it waits for a place and for a turn,
// until the context ends; the returned context has the turn. The body counts as in memory until release is called.
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

// readSmall reads a body that is small, or whose length is unknown, and reports whether it is done: it is not if the
// body is large or not JSON.
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

// readLarge reads the rest of a body, which has a place.
func (b *Bodies) readLarge(request *http.Request, into *bytes.Buffer, limit int64, g *admitted) error {
	defer b.awaiting(g).Stop()
	if rest := request.ContentLength - int64(into.Len()); rest > 0 { // Growing in steps would take twice as much.
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

// awaiting drops a body after bodyPatience.
func (b *Bodies) awaiting(g *admitted) *time.Timer {
	return time.AfterFunc(b.patience, func() {
		g.giveUp(WithStatus(http.StatusRequestTimeout, fmt.Errorf("the body did not come within %s", b.patience)))
	})
}

func tooLarge(limit int64) error {
	return WithStatus(http.StatusRequestEntityTooLarge, fmt.Errorf("request entity is too large; limit is %d bytes", limit))
}

// isObject reports whether a body is empty or a JSON object, and not YAML.
func isObject(body []byte) bool {
	body = bytes.TrimSpace(body)
	return len(body) == 0 || body[0] == '{'
}
