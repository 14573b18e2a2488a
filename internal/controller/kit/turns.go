package kit

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// turns is the library's queue with one priority for all, so that everything has its turn in the order in which it became due.
//
// The library gives the objects of the start a lower priority than later requests, and a retry keeps its priority. A
// request with a higher priority that fails or hangs again and again would keep all workers from the rest for as long
// as it does.
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
