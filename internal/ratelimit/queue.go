package ratelimit

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Waiting bounds the look-ups that wait in a Queue. A client that respects its own limits has a burst of 130 requests
// and 100 more in a second (gardenlet's defaults): there is room for four of them at their worst before anybody is
// refused, and then it is a client of the part that has most. One API server has 600 requests under way at most, by
// default. Each look-up that waits is a review: some 24 KiB of usual size, and 84 KiB if its body has the 64 KiB that
// a small one may have; so all of them are 24 MiB, and 84 MiB at most.
const Waiting = 1024

// ErrRefused reports a look-up that was not made: it waited until the deadline of its review, or the queue is full and
// its client has most in it.
var ErrRefused = errors.New("too many look-ups are waiting")

// Queue lets a bounded number of look-ups be under way, and shares them as API priority and fairness does: those that wait take turns by the
// first part of their client's path (a seed, a namespace), then by the next one, and those of one client are made in their order.
//
// Its invariants:
//   - At most atOnce look-ups are under way, at most waiting wait, and none waits while there is a place.
//   - Of n parts that have look-ups waiting each gets every n-th place that becomes free, however many the others have.
//   - A look-up is refused only at its deadline, or as the newest one of the largest part when the queue is full.
type Queue struct {
	atOnce, waiting int

	mu   sync.Mutex
	busy int
	all  share
}

// share is the share of the queue that belongs to a part of clients' paths. All paths of a queue have the same length.
type share struct {
	name   string
	parent *share
	// parts are the waiting parts of the share, by name, and order is the order of their turns.
	parts map[string]*share
	order list.List
	// place is the share's in its parent's order.
	place *list.Element
	// tickets are those of a client, the oldest first.
	tickets list.List
	// waiting counts the tickets of the share and of all its parts.
	waiting int
}

// ticket is a look-up that waits.
type ticket struct {
	client *share
	place  *list.Element
	// answered gets nil when the look-up may begin, and an error when it is refused.
	answered chan error
}

// NewQueue returns a queue that lets so many look-ups be under way and so many wait.
func NewQueue(atOnce, waiting int) *Queue { return &Queue{atOnce: atOnce, waiting: waiting} }

// Do makes a look-up when it is its turn; until the end of the look-up the review has no turn of the processor (Outside). The context says whose
// look-up it is (WithClient). Without a client nothing is shared, and so it does not wait. A nil queue never waits.
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
	case err := <-t.answered: // In the same moment.
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

// addLocked adds a ticket to those of its client.
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

// removeLocked takes a ticket away, and all shares that have none left.
func (t *ticket) removeLocked() {
	t.client.tickets.Remove(t.place)
	for s := t.client; s != nil; s = s.parent {
		if s.waiting--; s.waiting == 0 && s.parent != nil {
			s.parent.order.Remove(s.place)
			delete(s.parent.parts, s.name)
		}
	}
}

// nextLocked returns the ticket whose turn it is, which waits no more, and nil if none waits.
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

// largestLocked returns the newest ticket of the client that has most, in the part that has most.
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
