package admissioncontroller

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// garbage is the amount of garbage that is never collected: with less, a small garden would cost more CPU time
	// than the memory is worth.
	garbage = 12 << 20
	// mostPercent and leastPercent bound the garbage, in percent of the memory in use. Most of that is the graph,
	// which is permanent: with the default of 100 a process under load takes twice its memory. Vertices and their
	// first edges have no pointers, so the collector skips them, and with 25 it takes a third of a start, as with 40
	// when these had pointers.
	mostPercent, leastPercent = 100, 25
	// weighed is the interval of reading the graph's size, and often the interval at the start: a graph of 100,000
	// Shoots grows by 10 MiB per second then, and with an outdated percentage the heap would become twice as large. A
	// reading takes a microsecond.
	weighed   = 10 * time.Second
	often     = 250 * time.Millisecond
	beginning = 2 * time.Minute
)

// percentOf returns the allowed garbage in addition to the memory in use, in percent of the latter.
func percentOf(inUse uint64) int {
	return int(min(mostPercent, max(leastPercent, garbage*100/max(inUse, 1))))
}

// collector keeps the heap close to the memory in use, unless the environment sets GOGC.
type collector struct{ clock clock.Clock }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (collector) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (c collector) Start(ctx context.Context) error {
	if _, set := os.LookupEnv("GOGC"); set {
		return nil
	}
	for began := c.clock.Now(); ; {
		debug.SetGCPercent(percentOf(inUse()))
		select {
		case <-ctx.Done():
			return nil
		case <-c.clock.After(pause(c.clock.Since(began))):
		}
	}
}

// pause returns the time until the next reading, depending on the time since the start.
func pause(since time.Duration) time.Duration {
	if since < beginning {
		return often
	}
	return weighed
}

// inUse returns the memory in use after the last collection.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
