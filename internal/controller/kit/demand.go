package kit

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// demand is a queue without goroutines: one timer is for the requests that become due later.
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
	later   map[R]*dueRequest[R]
	order   dueOrder[R]
	timer   *time.Timer
	ended   bool
}

// dueRequest is a request that is due at a time.
type dueRequest[R comparable] struct {
	request R
	at      time.Time
	place   int
}

func newDemand[R comparable](limiter workqueue.TypedRateLimiter[R], woken func()) *demand[R] {
	return &demand[R]{limiter: limiter, woken: woken, inLine: map[R]struct{}{}, running: map[R]bool{}, later: map[R]*dueRequest[R]{}}
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
		d.addLaterLocked(request, time.Now().Add(after))
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
		heap.Remove(&d.order, due.place)
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

func (d *demand[R]) addLaterLocked(request R, at time.Time) {
	if _, there := d.inLine[request]; there || d.running[request] {
		return
	}
	due, waits := d.later[request]
	switch {
	case !waits:
		due = &dueRequest[R]{request: request, at: at}
		d.later[request] = due
		heap.Push(&d.order, due)
	case at.Before(due.at):
		due.at = at
		heap.Fix(&d.order, due.place)
	default:
		return
	}
	if due.place == 0 {
		d.setTimerLocked()
	}
}

// setTimerLocked has ripen called when the first request is due.
func (d *demand[R]) setTimerLocked() {
	if len(d.order) == 0 || d.ended {
		return
	}
	wait := max(0, time.Until(d.order[0].at))
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.ripen)
		return
	}
	d.timer.Reset(wait)
}

// ripen moves due requests into the line.
func (d *demand[R]) ripen() {
	d.mu.Lock()
	now := time.Now()
	for len(d.order) > 0 && !d.order[0].at.After(now) && !d.ended {
		d.addLocked(d.order[0].request)
	}
	d.setTimerLocked()
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
	if d.timer != nil {
		d.timer.Stop()
	}
	d.line, d.order = nil, nil
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

// dueOrder is a heap; the earliest request is first.
type dueOrder[R comparable] []*dueRequest[R]

func (o dueOrder[R]) Len() int           { return len(o) }
func (o dueOrder[R]) Less(i, j int) bool { return o[i].at.Before(o[j].at) }
func (o dueOrder[R]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i, j
}

// Push implements heap.Interface.
func (o *dueOrder[R]) Push(x any) {
	due := x.(*dueRequest[R])
	due.place = len(*o)
	*o = append(*o, due)
}

// Pop implements heap.Interface.
func (o *dueOrder[R]) Pop() any {
	old := *o
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*o = old[:len(old)-1]
	return last
}
