package admissioncontroller

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestPercent(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 100, 6 << 20: 100, 12 << 20: 100, 16 << 20: 75, 30 << 20: 40, 300 << 20: 25} {
		expect.Equal(t, percentOf(inUse), want, "%d bytes in use", inUse)
	}
}

// TestPause: the graph grows while the process begins, and is looked at more often then.
func TestPause(t *testing.T) {
	for since, want := range map[time.Duration]time.Duration{0: often, time.Minute: often, beginning: weighed, time.Hour: weighed} {
		expect.Equal(t, pause(since), want, "%v after the start", since)
	}
}

// TestCollector: garbage is collected earlier when much is in use, unless the environment says when.
func TestCollector(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	graph := make([]byte, 64<<20)
	runtime.GC()
	got := inUse()
	must.True(t, got >= uint64(len(graph)), "%d bytes are in use", got)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	t.Setenv("GOGC", "80")
	c := collector{clocktesting.NewFakeClock(time.Unix(0, 0))}
	err := c.Start(ctx)
	expect.True(t, err == nil && debug.SetGCPercent(100) == 100, "what the environment says is changed, %v", err)
	must.Succeed(t, os.Unsetenv("GOGC"))
	cancel()
	expect.Succeed(t, c.Start(ctx))
	expect.Equal(t, debug.SetGCPercent(100), leastPercent)
	runtime.KeepAlive(graph)
}
