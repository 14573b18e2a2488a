package kit

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue adds requests to the queue of a controller without an event. It is one of the controller's sources. Requests
// that are added before the controller starts are dropped, because a controller starts with all existing objects.
type Queue struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start implements source.Source.
func (q *Queue) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
	return nil
}

// AddAfter adds a request after a delay.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.mu.Lock()
	queue := q.queue
	q.mu.Unlock()
	if queue != nil {
		queue.AddAfter(request, after)
	}
}
