package ratelimit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestTurns: one review works at a time and the processor rests after each, but not for what a review waits for.
func TestTurns(t *testing.T) {
	work, wait := 10*time.Millisecond, time.Second
	for name, c := range map[string]struct {
		rest, reviews int
		review        func(context.Context) error
		want          time.Duration
	}{
		"work":                    {0, 5, func(context.Context) error { time.Sleep(work); return nil }, 5 * work},
		"work and rest":           {1, 5, func(context.Context) error { time.Sleep(work); return nil }, 9 * work},
		"T3-1/others work":        {0, 5, func(ctx context.Context) error { return Outside(ctx, func() error { time.Sleep(wait); return nil }) }, wait},
		"T3-1/no rest for a wait": {7, 5, func(ctx context.Context) error { return Outside(ctx, func() error { time.Sleep(wait); return nil }) }, wait},
		"T3-1/work before and after": {1, 2, func(ctx context.Context) error {
			time.Sleep(work)
			err := Outside(ctx, func() error { time.Sleep(wait); return nil })
			time.Sleep(work)
			return err
		}, wait + 4*work},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := NewTurns(c.rest)
				began := time.Now()
				var all sync.WaitGroup
				for range c.reviews {
					all.Go(func() {
						ctx, end, err := turns.Begin(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						defer end()
						expect.Succeed(t, c.review(ctx))
					})
				}
				all.Wait()
				expect.Equal(t, time.Since(began), c.want, "it took")
				time.Sleep(time.Minute)
				expect.Equal(t, len(turns.free), 0, "a turn is kept")
			})
		})
	}
}

// TestOutsideUntilTheDeadline: a review that gets no turn again before its deadline is told so, and keeps none.
func TestOutsideUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(0)
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ctx, end, err := turns.Begin(limited)
		must.Succeed(t, err)
		var other func()
		err = Outside(ctx, func() (err error) {
			_, other, err = turns.Begin(t.Context())
			return err
		})
		expect.ErrorIs(t, err, context.DeadlineExceeded)
		end()
		expect.Equal(t, len(turns.free), 1, "the turn of another one is ended")
		other()
		if err := Outside(t.Context(), func() error { return nil }); err != nil || len(turns.free) != 0 {
			t.Errorf("a review without a turn: %v", err)
		}
	})
}
