package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// unsyncedGrace is the time without sync after which liveness fails (PRC-52).
	unsyncedGrace = 3 * time.Minute
	// lockedFor is the time for which a lock may be held before readiness fails (PRC-59).
	lockedFor = time.Minute
	// probeTimeout limits a probe's own requests, as kubelet's default timeout is a second.
	probeTimeout = time.Second
)

var errNotSynced = errors.New("informers not synced yet")

// Awaited returns a readiness check that fails while kinds are not synced, with their names (PRC-54): otherwise a
// missing API would keep a process from becoming ready without a message.
func Awaited(awaited func() []string) healthz.Checker {
	return func(*http.Request) error {
		names := awaited()
		if len(names) == 0 {
			return nil
		}
		slices.Sort(names)
		return fmt.Errorf("%w: %s", errNotSynced, strings.Join(slices.Compact(names), ", "))
	}
}

// Until returns a function that returns a name until something is done.
func Until(name string, done func() bool) func() []string {
	return func() []string {
		if done() {
			return nil
		}
		return []string{name}
	}
}

// WithGrace lets a check fail for a while before it counts: a restart helps if a process hangs, but not if an API
// server is not available (PRC-52, OPB-10).
func WithGrace(check healthz.Checker, log logr.Logger, clock clock.PassiveClock) healthz.Checker {
	var mu sync.Mutex
	var failingSince time.Time
	return func(request *http.Request) error {
		err := check(request)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			failingSince = time.Time{}
			return nil
		}
		now := clock.Now()
		if failingSince.IsZero() {
			failingSince = now
		}
		if now.Sub(failingSince) < unsyncedGrace {
			log.Info("Cache sync check failed, but deadline not yet exceeded", "reason", err.Error(), "since", failingSince)
			return nil
		}
		return err
	}
}

// APIServerHealthz checks whether an API server is healthy (PRC-51).
func APIServerHealthz(client rest.Interface) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), probeTimeout)
		defer cancel()
		var status int
		result := client.Get().AbsPath("/healthz").Do(ctx).StatusCode(&status)
		if err := result.Error(); err != nil && status == 0 {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("failed talking to the source cluster's kube-apiserver (status code: %d)", status)
		}
		return nil
	}
}

// UntilFirst is a check that always succeeds once it has succeeded: if an API server is not available later, the
// process must stay ready.
func UntilFirst(check healthz.Checker) healthz.Checker {
	var reached atomic.Bool
	return func(request *http.Request) error {
		if reached.Load() {
			return nil
		}
		if err := check(request); err != nil {
			return err
		}
		reached.Store(true)
		return nil
	}
}

// Drain makes readiness fail before the process stops (OPB-17).
type Drain struct{ draining atomic.Bool }

// Check fails once the process is about to stop.
func (d *Drain) Check(*http.Request) error {
	if d.draining.Load() {
		return errors.New("shutting down")
	}
	return nil
}

// Check is a named check of liveness or readiness; a nil function means that there is none.
type Check struct {
	Name        string
	Live, Ready healthz.Checker
}

// known logs when a check starts to fail, with the reason, which the response to the probe does not contain, and when
// it succeeds again.
func known(name string, check healthz.Checker, log logr.Logger) healthz.Checker {
	var failing atomic.Bool
	return func(request *http.Request) error {
		err := check(request)
		if failing.Swap(err != nil) != (err != nil) {
			if err == nil {
				log.Info("Probe is well again", "check", name)
			} else {
				log.Info("Probe fails", "check", name, "reason", err.Error())
			}
		}
		return err
	}
}

// AddChecks adds checks, and those of all executables: ping, webhook-server and shutdown.
func AddChecks(mgr manager.Manager, drain *Drain, checks ...Check) error {
	log := mgr.GetLogger()
	checks = append(checks, Check{Name: "ping", Live: healthz.Ping}, Check{Name: "webhook-server", Ready: mgr.GetWebhookServer().StartedChecker()}, Check{Name: "shutdown", Ready: drain.Check})
	for _, c := range checks {
		if c.Live != nil {
			if err := mgr.AddHealthzCheck(c.Name, known(c.Name, c.Live, log)); err != nil {
				return err
			}
		}
		if c.Ready != nil {
			if err := mgr.AddReadyzCheck(c.Name, known(c.Name, c.Ready, log)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SyncCheck is a readiness check that is also a liveness check, with grace (PRC-52).
func SyncCheck(name string, awaited func() []string, log logr.Logger) Check {
	ready := Awaited(awaited)
	return Check{Name: name, Live: WithGrace(ready, log, clock.RealClock{}), Ready: ready}
}

// LockCheck is a readiness check that fails if a function that only takes locks does not return for a minute: a
// process that waits for a lock forever seems to be healthy, but does nothing (PRC-59). Each probe calls the function
// again, unless the last call has not returned.
func LockCheck(name string, takeLocks func(), clock clock.PassiveClock) Check {
	var mu sync.Mutex
	var began time.Time
	return Check{Name: name, Ready: func(*http.Request) error {
		mu.Lock()
		defer mu.Unlock()
		if !began.IsZero() {
			if waited := clock.Since(began); waited >= lockedFor {
				return fmt.Errorf("a lock of the process has been held for %s, so that nothing is done: the process must be restarted", waited.Round(time.Second))
			}
			return nil
		}
		began = clock.Now()
		go func() {
			takeLocks()
			mu.Lock()
			defer mu.Unlock()
			began = time.Time{}
		}()
		return nil
	}}
}

// ContactCheck is a readiness check that fails when the watch of a kind has been silent for longer than longest; 0
// means that it never fails. It detects a process that still serves requests, but possibly with outdated state.
func ContactCheck(silences func() map[string]time.Duration, longest time.Duration) Check {
	return Check{Name: "watch-contact", Ready: func(*http.Request) error {
		if longest == 0 {
			return nil
		}
		var silent []string
		for kind, silence := range silences() {
			if silence > longest {
				silent = append(silent, fmt.Sprintf("%s for %s", kind, silence.Round(time.Second)))
			}
		}
		if len(silent) == 0 {
			return nil
		}
		slices.Sort(silent)
		return fmt.Errorf("nothing was heard of %s", strings.Join(silent, ", "))
	}}
}
