package kit

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// demand is a queue without goroutines: the runtime has a timer for each request that becomes due later.
//
// Invariants:
//   - A request is in line, later, running, or running and again; it is in line once.
//   - Of several times for a request the earliest counts.
//   - woken is called, outside the lock, after a request got into the line.
type demand[R comparable] struct {
	limiter workqueue.TypedRateLimiter[R]
	woken   func()

	mu   sync.Mutex
	line []R
	// inLine has the requests of the line; running maps each request in progress to whether it is enqueued again
	// afterwards.
	inLine  map[R]struct{}
	running map[R]bool
	later   map[R]dueRequest
	ended   bool
}

// dueRequest is the time at which a request is due, and its timer.
type dueRequest struct {
	at    time.Time
	timer *time.Timer
}

func newDemand[R comparable](limiter workqueue.TypedRateLimiter[R], woken func()) *demand[R] {
	return &demand[R]{limiter: limiter, woken: woken, inLine: map[R]struct{}{}, running: map[R]bool{}, later: map[R]dueRequest{}}
}

// Add implements workqueue.TypedInterface.
func (d *demand[R]) Add(request R) { d.AddAfter(request, 0) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (d *demand[R]) AddRateLimited(request R) { d.AddAfter(request, d.limiter.When(request)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (d *demand[R]) Forget(request R) { d.limiter.Forget(request) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (d *demand[R]) NumRequeues(request R) int { return d.limiter.NumRequeues(request) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (d *demand[R]) AddAfter(request R, after time.Duration) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return
	}
	if after > 0 {
		d.addLaterLocked(request, after)
		d.mu.Unlock()
		return
	}
	d.addLocked(request)
	d.mu.Unlock()
	d.woken()
}

// addLocked puts a request into the line, or has it put there once it has run.
func (d *demand[R]) addLocked(request R) {
	if due, waits := d.later[request]; waits {
		due.timer.Stop()
		delete(d.later, request)
	}
	if _, runs := d.running[request]; runs {
		d.running[request] = true
		return
	}
	if _, there := d.inLine[request]; there {
		return
	}
	d.inLine[request] = struct{}{}
	d.line = append(d.line, request)
}

func (d *demand[R]) addLaterLocked(request R, after time.Duration) {
	if _, there := d.inLine[request]; there || d.running[request] {
		return
	}
	at := time.Now().Add(after)
	if due, waits := d.later[request]; waits {
		if !at.Before(due.at) {
			return
		}
		due.timer.Stop()
	}
	d.later[request] = dueRequest{at, time.AfterFunc(after, func() { d.ripen(request, at) })}
}

// ripen moves a request that is due into the line, unless it was moved or got an earlier time meanwhile.
func (d *demand[R]) ripen(request R, at time.Time) {
	d.mu.Lock()
	due, waits := d.later[request]
	if waits && due.at.Equal(at) && !d.ended {
		d.addLocked(request)
	}
	d.mu.Unlock()
	d.woken()
}

// due returns the number of requests that run or are in line.
func (d *demand[R]) due() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.line) + len(d.running)
}

// take takes the first request of the line; Done must follow.
func (d *demand[R]) take() (request R, found bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.line) == 0 || d.ended {
		return request, false
	}
	request, d.line = d.line[0], d.line[1:]
	if len(d.line) == 0 {
		d.line = nil
	}
	delete(d.inLine, request)
	d.running[request] = false
	return request, true
}

// Get implements workqueue.TypedInterface; it does not wait.
func (d *demand[R]) Get() (request R, shutdown bool) {
	request, found := d.take()
	return request, !found
}

// Done implements workqueue.TypedInterface.
func (d *demand[R]) Done(request R) {
	d.mu.Lock()
	again := d.running[request]
	delete(d.running, request)
	if again && !d.ended {
		d.addLocked(request)
	}
	d.mu.Unlock()
	if again {
		d.woken()
	}
}

// Len implements workqueue.TypedInterface.
func (d *demand[R]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.line)
}

// ShutDown implements workqueue.TypedInterface: nothing is taken or added any more.
func (d *demand[R]) ShutDown() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	for _, due := range d.later {
		due.timer.Stop()
	}
	d.line = nil
	clear(d.inLine)
	clear(d.later)
}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (d *demand[R]) ShutDownWithDrain() { d.ShutDown() }

// ShuttingDown implements workqueue.TypedInterface.
func (d *demand[R]) ShuttingDown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}
