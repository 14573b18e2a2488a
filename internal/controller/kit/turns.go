package kit

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// turns is the library's queue with one priority for all requests: it handles them in the order in which they become
// due.
//
// The library gives the objects of the start a lower priority than later requests, and a retry keeps its priority. A
// request with a higher priority that fails or hangs repeatedly would block all workers for other requests.
type turns[R comparable] struct {
	priorityqueue.PriorityQueue[R]
	shutDown func()
}

func newTurns[R comparable](name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
	queue := priorityqueue.New(name, func(o *priorityqueue.Opts[R]) { o.RateLimiter = limiter })
	return turns[R]{queue, sync.OnceFunc(queue.ShutDown)}
}

// ShutDown implements workqueue.TypedInterface; each controller of a shared queue calls it.
func (t turns[R]) ShutDown() { t.shutDown() }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (t turns[R]) AddWithOpts(options priorityqueue.AddOpts, items ...R) {
	options.Priority = nil
	t.PriorityQueue.AddWithOpts(options, items...)
}
