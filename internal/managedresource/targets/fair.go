package targets

import (
	"context"
	"net/http"

	"golang.org/x/time/rate"

	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/ratelimit"
)

const (
	// sourceAtOnce is the number of concurrent requests of all targets to the source: somewhat less than an API server
	// accepts on one connection (cluster.Streams), so that watches and the lease have room.
	sourceAtOnce = 64
	// sourceWaiting bounds the requests that wait. Each target has few workers, which send one request at a time, so
	// that it takes thousands of targets to fill it.
	sourceWaiting = 1 << 15
)

// Fair returns a transport for the source on which targets take turns: of n targets that wait each gets every n-th
// place, however much the others send. Requests that no target sends, such as those of the lease, never wait; neither
// do watches. The rate is that of all targets together, none if it is not positive: a client with a rate of its own
// would have all wait in one line.
func Fair(inner http.RoundTripper, qps float32, burst int) http.RoundTripper {
	limit := rate.NewLimiter(rate.Limit(qps), burst)
	if qps <= 0 {
		limit = rate.NewLimiter(rate.Inf, 0)
	}
	return &fair{inner, ratelimit.NewQueue(sourceAtOnce, sourceWaiting), limit}
}

type fair struct {
	http.RoundTripper
	queue *ratelimit.Queue
	rate  *rate.Limiter
}

// RoundTrip implements http.RoundTripper. A place is taken until the head of the answer is there.
func (f *fair) RoundTrip(request *http.Request) (response *http.Response, err error) {
	if answers.IsWatch(request) || len(ratelimit.ClientOf(request.Context())) == 0 {
		return f.RoundTripper.RoundTrip(request)
	}
	sent := false
	refused := f.queue.Do(request.Context(), func(ctx context.Context) error {
		if err := f.rate.Wait(ctx); err != nil {
			return err
		}
		sent = true
		response, err = f.RoundTripper.RoundTrip(request) //nolint:bodyclose // whoever asked closes it
		return err
	})
	if !sent {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, refused
	}
	return response, err
}
