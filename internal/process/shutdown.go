package process

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// drainTime is the time for which a process continues to serve after its readiness fails.
	drainTime = 800 * time.Millisecond
	// GracePeriod limits the time of the shutdown after that. Together with drainTime it is less than the five
	// seconds that deployments expect (OPB-17).
	GracePeriod = 4 * time.Second
)

// SignalContext returns a context that ends drainTime after the first SIGTERM or SIGINT; readiness fails at once. A
// second signal ends the process with exit code 1.
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
