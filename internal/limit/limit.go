// Package limit gives each client a budget of its own for something that costs others: reads of objects that no watch has brought yet.
//
// A budget is one point in time: when all of it will be there again. So a client costs some bytes, and whoever has not asked for a while
// is no different from one that was never seen.
package limit

import (
	"container/heap"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Options shape a limiter. All are required.
type Options struct {
	// PerSecond is how many a client may have each second in the long run, Burst how many at once.
	PerSecond, Burst int
	// Clients bounds how many clients are known at a time, and so the memory.
	Clients int
	Clock   clock.PassiveClock
}

// Limiter limits each client by itself. Its invariant, whatever clients ask in whatever order:
//   - Nobody hurts another: up to any moment a client was allowed at least as often as it would have been alone.
//   - Nobody exceeds the own budget: while at most Options.Clients have budgets that are not whole, a client was allowed exactly as often
//     as it would have been alone.
//   - At most Options.Clients clients are kept, with bounded names.
//
// More clients than that can only be invented ones. Then the budget that is whole again first is forgotten, which gives its client more,
// never less; the sum is bounded by what invents the clients.
type Limiter struct {
	options Options
	// one is the time that one permission takes to come back.
	one time.Duration

	mu      sync.Mutex
	clients map[string]*budget
	// order has what is whole again first on top.
	order byWhole
}

// budget of a client: whole is when nothing of it will be missing any more.
type budget struct {
	client string
	whole  time.Time
	place  int
}

// New returns a limiter.
func New(o Options) *Limiter {
	return &Limiter{options: o, one: time.Second / time.Duration(o.PerSecond), clients: map[string]*budget{}}
}

// Allow says whether a client may have one more now, and takes it from its budget.
func (l *Limiter) Allow(client string) bool {
	client = bounded(client)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.options.Clock.Now()
	b := l.budgetLocked(client, now)
	next := b.whole
	if next.Before(now) {
		next = now
	}
	next = next.Add(l.one)
	if next.Sub(now) > l.one*time.Duration(l.options.Burst) {
		return false
	}
	b.whole = next
	heap.Fix(&l.order, b.place)
	return true
}

// Clients returns how many clients are known.
func (l *Limiter) Clients() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients)
}

// budgetLocked returns the budget of a client; if there is no room for it, that which is whole first goes.
func (l *Limiter) budgetLocked(client string, now time.Time) *budget {
	if b := l.clients[client]; b != nil {
		return b
	}
	if len(l.order) >= l.options.Clients {
		delete(l.clients, heap.Pop(&l.order).(*budget).client)
	}
	client = strings.Clone(client) // It may be a part of something larger, which would stay with it.
	b := &budget{client: client, whole: now}
	l.clients[client] = b
	heap.Push(&l.order, b)
	return b
}

// longest is the length of the longest name of a Kubernetes object; users have a prefix and a namespace in front of one.
const longest = 3 * 253

// bounded replaces a name that is longer than any real one by its digest.
func bounded(client string) string {
	if len(client) <= longest {
		return client
	}
	digest := sha256.Sum256([]byte(client))
	return string(digest[:])
}

// byWhole implements heap.Interface.
type byWhole []*budget

func (h byWhole) Len() int           { return len(h) }
func (h byWhole) Less(i, j int) bool { return h[i].whole.Before(h[j].whole) }
func (h byWhole) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *byWhole) Push(b any) {
	b.(*budget).place = len(*h)
	*h = append(*h, b.(*budget))
}

// Pop implements heap.Interface.
func (h *byWhole) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}
