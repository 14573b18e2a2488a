package steps

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/espalier-project/espalier/test/expect"
)

// A run gets on while requests of other runs hang, and waiting ends with the context.
func TestHangingRunsDoNotStopOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimits()
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		begun := make(chan int, 3)
		var inFlight atomic.Int32
		for range 3 {
			go func() {
				begun <- l.Parallel(ctx, 100, func(int) { inFlight.Add(1); <-release }, nil)
			}()
		}
		synctest.Wait()
		got := inFlight.Load()
		expect.True(t, got <= allRuns+3*reserved, "%d requests in flight", got)
		var done atomic.Int32
		if got := l.Parallel(t.Context(), 50, func(int) { done.Add(1) }, nil); got != 50 || done.Load() != 50 {
			t.Errorf("begun %d, done %d of 50", got, done.Load())
		}
		cancel()
		synctest.Wait()
		close(release)
		total := 0
		for range 3 {
			total += <-begun
		}
		expect.Equal(t, total, int(inFlight.Load()), "said to have begun %d, did %d", total, inFlight.Load())
		panicked := 0
		l.Parallel(t.Context(), 1, func(int) { panic("x") }, func(int, error) { panicked++ })
		expect.Equal(t, panicked, 1, "reports of a panic")
		expect.Equal(t, len(l.slots), 0, "slots are still taken")
	})
}
