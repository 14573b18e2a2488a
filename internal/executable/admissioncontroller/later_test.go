package admissioncontroller

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// TestLater: what is to come later does not begin before its time, and not after the end.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var come, began atomic.Bool
		l := later{manager.RunnableFunc(func(context.Context) error { began.Store(true); return nil }), come.Load, clock.RealClock{}}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Start(ended); err != nil || began.Load() {
			t.Errorf("after the end: %v, began %v", err, began.Load())
		}
		go func() { _ = l.Start(t.Context()) }()
		time.Sleep(time.Minute)
		if began.Load() {
			t.Error("it began before its time")
		}
		come.Store(true)
		time.Sleep(2 * soon)
		if !began.Load() {
			t.Error("it does not begin")
		}
	})
}
