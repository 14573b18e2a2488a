package ratelimit

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Waiting limits the lookups that wait in a Queue. A client that respects its own limits has a burst of 130 requests
// and 100 more in a second (gardenlet's defaults). So the queue has room for four of them at their worst before a
// lookup is refused, and then it is one of the part with the most lookups. One API server has 600 concurrent requests
// at most, by default. Each waiting lookup is a review: about 24 KiB of usual size, and 84 KiB if its body has the 64
// KiB that a small one may have; so all of them are 24 MiB, and 84 MiB at most.
const Waiting = 1024

// ErrRefused reports a lookup that was not made: it waited until the deadline of its review, or the queue is full and
// its client has the most lookups in it.
var ErrRefused = errors.New("too many look-ups are waiting")

// Queue limits concurrent lookups, and shares them as API priority and fairness does: waiting lookups take turns by
// the first part of their client's path (a seed, a namespace), then by the next part, and those of one client are
// made in their order.
//
// Its invariants:
//   - At most atOnce lookups are made at a time, at most waiting wait, and none waits while there is a place.
//   - Of n parts with waiting lookups each gets every n-th place that becomes free, however many the others have.
//   - A lookup is refused only at its deadline, or as the newest one of the largest part when the queue is full.
type Queue struct {
	atOnce, waiting int

	mu   sync.Mutex
	busy int
	all  share
}

// share is the part of the queue for one part of clients' paths. All paths of a queue have the same length.
type share struct {
	name   string
	parent *share
	// parts are the waiting parts of the share, by name, and order is the order of their turns.
	parts map[string]*share
	order list.List
	// place is the position of the share in its parent's order.
	place *list.Element
	// tickets are the waiting lookups of a client, the oldest first.
	tickets list.List
	// waiting counts the tickets of the share and of all its parts.
	waiting int
}

// ticket is a waiting lookup.
type ticket struct {
	client *share
	place  *list.Element
	// answered receives nil when the lookup may begin, and an error when it is refused.
	answered chan error
}

// NewQueue returns a queue with a limit for concurrent lookups, and one for waiting lookups.
func NewQueue(atOnce, waiting int) *Queue { return &Queue{atOnce: atOnce, waiting: waiting} }

// Do makes a lookup when it is its turn. Until the end of the lookup the review has no turn of the processor
// (Outside). The context has the client of the lookup (WithClient); a lookup without a client does not wait. A nil
// queue never waits.
func (q *Queue) Do(ctx context.Context, look func(context.Context) error) error {
	return Outside(ctx, func() error {
		path := ClientOf(ctx)
		if q == nil || len(path) == 0 {
			return look(ctx)
		}
		if err := q.enter(ctx, path); err != nil {
			return err
		}
		defer q.leave()
		return look(ctx)
	})
}

// enter waits for a place.
func (q *Queue) enter(ctx context.Context, path []string) error {
	if ctx.Err() != nil {
		return ErrRefused
	}
	t := q.begin(path)
	if t == nil {
		return nil
	}
	select {
	case err := <-t.answered:
		return err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case err := <-t.answered: // At the same moment.
		if err == nil {
			q.leaveLocked()
		}
	default:
		t.removeLocked()
	}
	return ErrRefused
}

// begin takes a place, or a ticket for one.
func (q *Queue) begin(path []string) *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy < q.atOnce {
		q.busy++
		return nil
	}
	t := q.all.addLocked(path)
	if q.all.waiting > q.waiting {
		last := q.all.largestLocked()
		last.removeLocked()
		last.answered <- ErrRefused
	}
	return t
}

func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leaveLocked()
}

// leaveLocked hands a place to the next one.
func (q *Queue) leaveLocked() {
	if next := q.all.nextLocked(); next != nil {
		next.answered <- nil
		return
	}
	q.busy--
}

// addLocked adds a ticket to the tickets of its client.
func (s *share) addLocked(path []string) *ticket {
	s.waiting++
	if len(path) == 0 {
		t := &ticket{client: s, answered: make(chan error, 1)}
		t.place = s.tickets.PushBack(t)
		return t
	}
	part := s.parts[path[0]]
	if part == nil {
		if s.parts == nil {
			s.parts = map[string]*share{}
		}
		part = &share{name: path[0], parent: s}
		part.place = s.order.PushBack(part)
		s.parts[part.name] = part
	}
	return part.addLocked(path[1:])
}

// removeLocked removes a ticket, and all shares without tickets.
func (t *ticket) removeLocked() {
	t.client.tickets.Remove(t.place)
	for s := t.client; s != nil; s = s.parent {
		if s.waiting--; s.waiting == 0 && s.parent != nil {
			s.parent.order.Remove(s.place)
			delete(s.parent.parts, s.name)
		}
	}
}

// nextLocked removes and returns the ticket whose turn it is, nil if none waits.
func (s *share) nextLocked() *ticket {
	for s.order.Len() > 0 {
		front := s.order.Front()
		s.order.MoveToBack(front)
		s = front.Value.(*share)
	}
	oldest := s.tickets.Front()
	if oldest == nil {
		return nil
	}
	t := oldest.Value.(*ticket)
	t.removeLocked()
	return t
}

// largestLocked returns the newest ticket of the client with the most tickets, in the part with the most tickets.
func (s *share) largestLocked() *ticket {
	for s.order.Len() > 0 {
		var most *share
		for e := s.order.Front(); e != nil; e = e.Next() {
			if part := e.Value.(*share); most == nil || part.waiting > most.waiting {
				most = part
			}
		}
		s = most
	}
	return s.tickets.Back().Value.(*ticket)
}
