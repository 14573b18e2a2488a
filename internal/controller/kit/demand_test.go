package kit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestLawOfDemand: whatever is added, at once or for later, runs when it is due: once, and once more if it was added while it ran; of several times the
// earliest counts.
func TestLawOfDemand(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			what, key int
			after     time.Duration
		}
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{rapid.IntRange(0, 4).Draw(rt, "what"), rapid.IntRange(0, 3).Draw(rt, "key"), time.Duration(rapid.IntRange(1, 5).Draw(rt, "after")) * time.Second}
		}), 1, 40).Draw(rt, "steps")
		failed := ""
		synctest.Test(t, func(*testing.T) {
			d := newDemand[int](workqueue.DefaultTypedControllerRateLimiter[int](), func() {})
			defer d.ShutDown()
			// wanted has when a request is due; running whether it was added meanwhile, and for when.
			wanted, running := map[int]time.Time{}, map[int]bool{}
			want := func(key int, at time.Time) {
				if before, there := wanted[key]; !there || at.Before(before) {
					wanted[key] = at
				}
			}
			for i, s := range steps {
				now := time.Now()
				switch s.what {
				case 0:
					d.Add(s.key)
					want(s.key, now)
				case 1:
					d.AddAfter(s.key, s.after)
					want(s.key, now.Add(s.after))
				case 2:
					time.Sleep(s.after)
					synctest.Wait()
				case 3:
					key, found := d.take()
					if found && (wanted[key].IsZero() || wanted[key].After(now) || running[key]) {
						failed = fmt.Sprintf("step %d: %d was taken before it is due, or while it runs", i, key)
						return
					}
					if found {
						delete(wanted, key)
						running[key] = true
					}
				case 4:
					for key := range running {
						d.Done(key)
						delete(running, key)
						break
					}
				}
				due := 0
				for key, at := range wanted {
					if !at.After(time.Now()) && !running[key] {
						due++
					}
				}
				if got := d.Len(); got != due {
					failed = fmt.Sprintf("step %d: %d requests are in line, %d are due", i, got, due)
					return
				}
			}
		})
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}

// hosting is a host that notes panics.
type hosting struct {
	manager.Manager
	panics atomic.Int32
}

func (h *hosting) Panicked(any) { h.panics.Add(1) }

// TestOnDemand: as many workers run as there are requests, within the limit, and none is left; a failure is tried again, a panic is told to the host.
func TestOnDemand(t *testing.T) {
	host := &hosting{Manager: newManager(t)}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		atOnce, most, calls := 0, 0, map[string]int{}
		reconciler := reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			mu.Lock()
			atOnce++
			most = max(most, atOnce)
			calls[request.Name]++
			call := calls[request.Name]
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				atOnce--
			}()
			time.Sleep(time.Second)
			switch {
			case request.Name == "panics" && call == 1:
				panic("on purpose")
			case request.Name == "fails" && call == 1:
				return reconcile.Result{}, errors.New("on purpose")
			case request.Name == "hopeless":
				return reconcile.Result{}, reconcile.TerminalError(errors.New("on purpose"))
			case request.Name == "again" && call < 3:
				return reconcile.Result{RequeueAfter: time.Minute}, nil
			}
			return reconcile.Result{}, nil
		})
		names := []string{"panics", "fails", "hopeless", "again", "fine"}
		c := newOnDemand(host, "test", controller.Options{Reconciler: reconciler, RateLimiter: Retries(), MaxConcurrentReconciles: 3, CacheSyncTimeout: time.Minute},
			[]source.TypedSource[reconcile.Request]{source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
				for _, name := range names {
					queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
				}
				return nil
			})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Start(ctx) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if c.workers != 0 || atOnce != 0 || most != 3 {
			t.Errorf("%d workers are left, %d were at once", c.workers, most)
		}
		if want := map[string]int{"panics": 1, "fails": 2, "hopeless": 1, "again": 3, "fine": 1}; !maps.Equal(calls, want) {
			t.Errorf("got %v, want %v", calls, want)
		}
		if host.panics.Load() != 1 {
			t.Errorf("%d panics were told", host.panics.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.queue.Add(reconcile.Request{})
		if synctest.Wait(); c.workers != 0 || slices.Contains(names, "") {
			t.Error("it works after its end")
		}
	})
}
