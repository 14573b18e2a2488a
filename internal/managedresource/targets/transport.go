package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

// transport sends the requests to one target: with its present token, and within its limits.
type transport struct {
	inner http.RoundTripper
	// bulk sends requests whose answers are large, as lists are. Connections keep the room for the largest piece that they
	// ever received, some 70 KiB: those of bulk end when they are idle, and the ones with the watches stay small.
	bulk http.RoundTripper
	// token is the bearer token, which may change at any time; empty for other credentials.
	token atomic.Pointer[string]
	// places are those of requests under way, watches aside.
	places chan struct{}
	// watched limits the rate of reading all watches.
	watched *rate.Limiter
	clock   clock.PassiveClock
	// refused returns an error once requests to the target are those of another process.
	refused func() error
	// silent is since when no request was answered, in nanoseconds of Unix time; 0 if the last one was.
	silent atomic.Int64
}

// errNoPlace is about a request that found no place until its end.
var errNoPlace = errors.New("other requests to the target are under way, and none ends")

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	// A creation may outlive the context of its run (target.outliving), and its place is left with its answer.
	ctx, cancel := context.WithCancel(request.Context())
	sent := request.Clone(ctx)
	if token := t.token.Load(); token != nil && *token != "" {
		sent.Header.Set("Authorization", "Bearer "+*token)
	}
	stream := answers.IsWatch(request)
	if !stream {
		select {
		case t.places <- struct{}{}:
			end := cancel
			cancel = sync.OnceFunc(func() { end(); <-t.places })
		case <-ctx.Done():
			cancel()
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("%w: %w", errNoPlace, ctx.Err())
		}
	}
	inner := t.inner
	if isBulk(request) {
		inner = t.bulk
	}
	if err := t.refused(); err != nil {
		cancel()
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := inner.RoundTrip(sent)
	t.noted(request.Context(), err)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &placed{response.Body, cancel}
	if stream {
		response.Body = &watched{response.Body, t.watched, ctx}
	}
	return response, nil
}

// noted takes whether a request was answered. A request that was given up says nothing.
func (t *transport) noted(ctx context.Context, err error) {
	switch {
	case err == nil:
		t.silent.Store(0)
	case ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.silent.CompareAndSwap(0, t.clock.Now().UnixNano())
	}
}

// silentFor returns the time for which no request was answered though some were sent.
func (t *transport) silentFor() time.Duration {
	since := t.silent.Load()
	if since == 0 {
		return 0
	}
	return t.clock.Now().Sub(time.Unix(0, since))
}

// watched is a stream that is read no faster than its target may.
type watched struct {
	io.ReadCloser
	limit *rate.Limiter
	ctx   context.Context
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p[:min(len(p), w.limit.Burst())])
	if n > 0 {
		if late := w.limit.WaitN(w.ctx, n); late != nil && err == nil {
			err = late
		}
	}
	return n, err
}

// placed is an answer whose request keeps its place until the end of the answer.
type placed struct {
	io.ReadCloser
	leave func()
}

// Close implements io.Closer.
func (p *placed) Close() error {
	err := p.ReadCloser.Close()
	p.leave()
	return err
}

// of returns a context whose requests to the source are those of a target.
func of(ctx context.Context, target string) context.Context { return ratelimit.WithClient(ctx, target) }

// isBulk reports whether a request reads a list or what the API server serves, and not a single object: by its path,
// which ends with a resource then, or before one.
func isBulk(request *http.Request) bool {
	if request.Method != http.MethodGet || answers.IsWatch(request) {
		return false
	}
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch parts[0] {
	case "api":
		parts = parts[min(2, len(parts)):]
	case "apis":
		parts = parts[min(3, len(parts)):]
	default:
		return strings.HasPrefix(parts[0], "openapi")
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) < 2
}
