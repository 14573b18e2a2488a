package source

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// sendWithin limits the time of one Event. Many clusters have a separate etcd for Events; if it is down, the API
	// server would hold each request for a minute.
	sendWithin = 5 * time.Second
	// mostUnsent limits the queued Events: with a message of 1 KiB and some hundred bytes more each, they take a few
	// megabytes. All ManagedResources of a large cluster may begin to fail at the same time.
	mostUnsent = 2000
)

// sender creates Events one after the other, in the order of the calls of send. Its callers do not wait.
//
// Invariant: as long as an Event is queued or in flight, one goroutine sends; idle is closed when it ends, and nil if
// there is none. It ends by itself, so that an idle sender has no goroutine.
type sender struct {
	client corev1client.EventsGetter

	mu     sync.Mutex
	unsent []unsent
	idle   chan struct{}
	// cancel ends the request in flight.
	cancel context.CancelFunc
	// dropped counts the Events that were dropped since the last one that was queued.
	dropped int
	ended   bool
}

// unsent is an Event with the logger of its caller.
type unsent struct {
	event *corev1.Event
	log   logr.Logger
}

// send queues an Event, or drops it if the queue is full.
func (s *sender) send(ctx context.Context, event *corev1.Event) {
	next := unsent{event, log.FromContext(ctx)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		next.failed(errors.New("the process ends"))
		return
	}
	if len(s.unsent) >= mostUnsent {
		if s.dropped++; s.dropped == 1 {
			next.log.Info("Events are dropped, as they are not created as fast as they come", "waiting", len(s.unsent))
		}
		return
	}
	if s.dropped > 0 {
		next.log.Info("Events are no longer dropped", "dropped", s.dropped)
		s.dropped = 0
	}
	s.unsent = append(s.unsent, next)
	if s.idle == nil {
		s.idle = make(chan struct{})
		ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		go s.run(ctx)
	}
}

// run sends Events until the queue is empty.
func (s *sender) run(ctx context.Context) {
	for {
		next, found := s.take()
		if !found {
			return
		}
		s.create(ctx, next)
	}
}

// take removes the next Event from the queue and returns it. If it returns false, the queue is empty and the caller
// must end.
func (s *sender) take() (unsent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsent) == 0 {
		s.cancel()
		close(s.idle)
		s.unsent, s.idle, s.cancel = nil, nil, nil
		return unsent{}, false
	}
	next := s.unsent[0]
	s.unsent[0] = unsent{}
	s.unsent = s.unsent[1:]
	return next, true
}

func (s *sender) create(ctx context.Context, next unsent) {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	if _, err := s.client.Events(next.event.Namespace).Create(ctx, next.event, metav1.CreateOptions{}); err != nil {
		next.failed(err)
	}
}

func (u unsent) failed(err error) {
	u.log.V(1).Info("Could not record an event", "reason", err.Error())
}

// Flush waits until the queue is empty, or the context ends.
func (s *sender) Flush(ctx context.Context) {
	for {
		s.mu.Lock()
		idle := s.idle
		s.mu.Unlock()
		if idle == nil {
			return
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

// End sends queued Events for a while, drops the others, and accepts no more. It is called when the process ends.
func (s *sender) End() {
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin)
	defer cancel()
	s.Flush(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.unsent = nil
	if s.cancel != nil {
		s.cancel()
	}
}
