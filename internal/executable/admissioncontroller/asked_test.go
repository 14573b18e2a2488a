package admissioncontroller

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestAsked: what webhooks keep begins with their first request, which waits for it, but not for ever.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var synced atomic.Bool
		a := &asked{clock: clock.RealClock{}}
		ready := a.ready(synced.Load)
		if a.Asked() {
			t.Error("asked before the first request")
		}
		if begin := time.Now(); ready() || time.Since(begin) < patience || time.Since(begin) > 2*patience {
			t.Errorf("it waited %v for what never comes", time.Since(begin))
		}
		if !a.Asked() {
			t.Error("the request was not told of")
		}
		time.AfterFunc(time.Second, func() { synced.Store(true) })
		if begin := time.Now(); !ready() || time.Since(begin) > 2*time.Second {
			t.Errorf("it waited %v for what came after a second", time.Since(begin))
		}
		if begin := time.Now(); !ready() || time.Since(begin) > 0 {
			t.Errorf("it waited %v for what is there", time.Since(begin))
		}
	})
}
