package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

// bubble runs one drawn case in a bubble of its own, and reports what went wrong outside of it: rapid ends a case by a panic.
func bubble(t *testing.T, rt *rapid.T, run func(ctx context.Context, fail func(format string, arguments ...any))) {
	var mu sync.Mutex
	var failed string
	synctest.Test(t, func(t *testing.T) {
		run(t.Context(), func(format string, arguments ...any) {
			mu.Lock()
			defer mu.Unlock()
			if failed == "" {
				failed = fmt.Sprintf(format, arguments...)
			}
		})
	})
	expect.Equal(rt, failed, "")
}

// TestPropertyOfHonestClients: a client that keeps to the limits of its own side is never refused, alone or beside hostile ones, whatever kind of client
// it is. Hostile clients ask as often as API servers let them, each of which has 600 requests under way by default, under as many names as they like, and
// ask again when they are refused; and another client of the same seed may run wild.
//
// The arithmetic: with n parts that want more than they get each gets (at once ÷ latency) ÷ n look-ups a second, which must be what the client may
// ask for, burst and all, within its deadline; and the queue has room for four such clients (Waiting).
func TestPropertyOfHonestClients(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]struct {
			perSecond, burst, reads int
			deadline                time.Duration
		}{
			{100, 130, 1, 9 * time.Second}, // gardenlet and extensions: look-ups of the authorizer
			{100, 130, 3, 9 * time.Second}, // and reads of the restriction
			{50, 100, 2, 9 * time.Second},  // a node agent
		}).Draw(rt, "client")
		hostile := rapid.IntRange(0, 3).Draw(rt, "hostile parts")
		atOnce := rapid.IntRange(64, 100).Draw(rt, "at once")
		parts, insider := hostile+1, hostile > 0 && rapid.Bool().Draw(rt, "one of them is a client of the same seed")
		if insider {
			hostile = min(hostile, 2)
			parts = 2 * hostile // The seed's share is halved.
		}
		// As slow as the garden may be: the burst has to be read within the deadline.
		slowest := time.Duration(atOnce) * time.Second / time.Duration(kind.reads*(kind.perSecond+kind.burst/8)*parts)
		latency := min(time.Second, slowest) * time.Duration(rapid.IntRange(25, 100).Draw(rt, "latency in percent")) / 100
		bubble(t, rt, func(ctx context.Context, fail func(string, ...any)) {
			q := NewQueue(atOnce, Waiting)
			look := func(context.Context) error {
				time.Sleep(latency)
				return nil
			}
			ended, end := context.WithCancel(ctx)
			var all sync.WaitGroup
			for part := range hostile {
				name := fmt.Sprint("Seed:hostile", part)
				if insider && part == 0 {
					name = "Seed:good"
				}
				for i := range 1500 / hostile {
					all.Go(func() {
						for ended.Err() == nil {
							user := fmt.Sprint("invented", i)
							if name == "Seed:good" {
								user = "extension"
							}
							ctx, cancel := context.WithTimeout(WithClient(ended, name, user), 9*time.Second)
							if q.Do(ctx, look) != nil {
								time.Sleep(100 * time.Millisecond)
							}
							cancel()
						}
					})
				}
			}
			synctest.Wait()
			limiter := rate.NewLimiter(rate.Limit(kind.perSecond), kind.burst)
			var honest sync.WaitGroup
			for range kind.burst + kind.perSecond {
				if err := limiter.Wait(ctx); err != nil {
					fail("%v", err)
				}
				honest.Go(func() {
					ctx, cancel := context.WithTimeout(WithClient(ctx, "Seed:good", "gardenlet"), kind.deadline)
					defer cancel()
					for range kind.reads {
						if err := q.Do(ctx, look); err != nil {
							fail("T3-1: the honest client is refused: %v", err)
						}
					}
				})
			}
			honest.Wait()
			end()
			all.Wait()
		})
	})
}

// TestPropertyOfQueues: whatever clients ask, at most so many look-ups are under way and wait, none waits while there is a place, and afterwards nothing
// is kept.
func TestPropertyOfQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		atOnce, waiting := rapid.IntRange(1, 5).Draw(rt, "at once"), rapid.IntRange(1, 20).Draw(rt, "waiting")
		asked := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) (a struct {
			seed, user           string
			after, takes, within time.Duration
		}) {
			a.seed, a.user = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "seed"), rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "user")
			a.after = time.Duration(rapid.IntRange(0, 50).Draw(rt, "after")) * time.Millisecond
			a.takes = time.Duration(rapid.IntRange(0, 50).Draw(rt, "takes")) * time.Millisecond
			a.within = time.Duration(rapid.IntRange(1, 100).Draw(rt, "within")) * time.Millisecond
			return a
		}), 1, 100).Draw(rt, "asked")
		bubble(t, rt, func(ctx context.Context, fail func(string, ...any)) {
			q := NewQueue(atOnce, waiting)
			var busy atomic.Int32
			var all sync.WaitGroup
			for _, a := range asked {
				all.Go(func() {
					time.Sleep(a.after)
					ctx, cancel := context.WithTimeout(WithClient(ctx, a.seed, a.user), a.within)
					defer cancel()
					err := q.Do(ctx, func(context.Context) error {
						if int(busy.Add(1)) > atOnce {
							fail("%d look-ups are under way, %d may be", busy.Load(), atOnce)
						}
						defer busy.Add(-1)
						time.Sleep(a.takes)
						return nil
					})
					if err != nil && !errors.Is(err, ErrRefused) {
						fail("got %v", err)
					}
				})
			}
			watch := func() {
				q.mu.Lock()
				defer q.mu.Unlock()
				if q.all.waiting > waiting || q.all.waiting > 0 && q.busy < atOnce {
					fail("%d wait, %d may, and %d of %d are under way", q.all.waiting, waiting, q.busy, atOnce)
				}
			}
			for range 100 {
				time.Sleep(time.Millisecond)
				synctest.Wait()
				watch()
			}
			all.Wait()
			if q.busy != 0 || q.all.waiting != 0 || len(q.all.parts) != 0 || q.all.order.Len() != 0 {
				fail("the queue keeps %d busy, %d waiting in %d parts", q.busy, q.all.waiting, len(q.all.parts))
			}
		})
	})
}

// TestTurnsOfParts: parts take turns, then clients in them, and each client's look-ups are made in their order.
func TestTurnsOfParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 100)
		var order []string
		var all sync.WaitGroup
		ask := func(name string, path ...string) {
			all.Go(func() {
				err := q.Do(WithClient(t.Context(), path...), func(context.Context) error {
					time.Sleep(time.Second)
					order = append(order, name)
					return nil
				})
				expect.Succeed(t, err, "%s", name)
			})
			synctest.Wait()
		}
		ask("first", "hostile", "a")
		for i := range 3 {
			ask(fmt.Sprint("a", i), "hostile", "a")
		}
		ask("b0", "hostile", "b")
		ask("good0", "good", "gardenlet")
		ask("good1", "good", "gardenlet")
		all.Wait()
		expect.Equal(t, fmt.Sprint(order), "[first a0 good0 b0 good1 a1 a2]", "T3-1")
	})
}

// TestFullQueue: when the queue is full the newest look-up of the client that has most is refused, whoever asks.
func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 5)
		end := make(chan struct{})
		refused := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		ask := func(path ...string) {
			all.Go(func() {
				err := q.Do(WithClient(t.Context(), path...), func(context.Context) error { <-end; return nil })
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					refused[path[1]]++
				}
			})
			synctest.Wait()
		}
		for range 7 { // One is under way, five wait.
			ask("hostile", "h")
		}
		for range 3 {
			ask("good", "g")
		}
		ask("other", "o")
		mu.Lock()
		expect.True(t, refused["h"] == 4 && refused["g"]+refused["o"] == 1, "T3-1: refused are %v", refused)
		mu.Unlock()
		close(end)
		all.Wait()
	})
}

// TestNoClient: what a process does of its own accord does not wait, and neither does anybody where there is no queue.
func TestNoClient(t *testing.T) {
	q := NewQueue(0, 0)
	look := func(context.Context) error { return nil }
	expect.Succeed(t, q.Do(t.Context(), look))
	expect.Succeed(t, (*Queue)(nil).Do(WithClient(t.Context(), "a"), look), "without a queue")
	expect.ErrorIs(t, q.Do(WithClient(t.Context(), "a"), look), ErrRefused, "a queue of nothing")
	ended, end := context.WithCancel(WithClient(t.Context(), "a"))
	end()
	expect.ErrorIs(t, NewQueue(1, 1).Do(ended, look), ErrRefused, "after the deadline")
}
