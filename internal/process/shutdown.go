package process

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// drainTime is the time for which a process goes on serving after it has withdrawn its readiness.
	drainTime = 800 * time.Millisecond
	// GracePeriod limits the time in which everything ends after that; with drainTime it stays below the five seconds
	// that deployments count on (OPB-17).
	GracePeriod = 4 * time.Second
)

// SignalContext returns a context that ends some moments after the first SIGTERM or SIGINT, with readiness withdrawn at
// once; a second signal ends the process with exit code 1.
func SignalContext(drain *Drain) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		drain.draining.Store(true)
		select {
		case <-signals:
			os.Exit(1)
		case <-time.After(drainTime):
		}
		cancel()
		<-signals
		os.Exit(1)
	}()
	return ctx
}
