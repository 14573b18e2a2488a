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
	// unsyncedGrace limits the time out of sync before liveness fails (PRC-52).
	unsyncedGrace = 3 * time.Minute
	// lockedFor is the longest time that a lock may be held before readiness fails (PRC-59).
	lockedFor = time.Minute
	// probeTimeout limits a probe's own requests: kubelet gives up after a second by default.
	probeTimeout = time.Second
)

var errNotSynced = errors.New("informers not synced yet")

// Awaited turns the names of unsynced kinds into a readiness check, which names them (PRC-54): a missing API would
// keep a process from becoming ready without a trace.
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

// Until returns a name while something is not done yet.
func Until(name string, done func() bool) func() []string {
	return func() []string {
		if done() {
			return nil
		}
		return []string{name}
	}
}

// WithGrace lets a check fail for a while before it counts: a restart helps against a process that hangs, not against an
// API server that is away (PRC-52, OPB-10).
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

// APIServerHealthz asks an API server whether it is well (PRC-51).
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

// UntilFirst is a check that counts until it has succeeded once: an API server that was reached at the start may be
// away for a while later without anybody being sent elsewhere.
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

// Drain withdraws readiness before anything stops (OPB-17).
type Drain struct{ draining atomic.Bool }

// Check fails as soon as the process is about to stop.
func (d *Drain) Check(*http.Request) error {
	if d.draining.Load() {
		return errors.New("shutting down")
	}
	return nil
}

// Check is a named check of liveness or readiness; nil means that there is none.
type Check struct {
	Name        string
	Live, Ready healthz.Checker
}

// known logs when a check begins to fail, with the reason, which the answer to the probe does not contain, and when
// the check succeeds again.
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

// AddChecks adds checks, and those that every executable has: ping, webhook-server and shutdown.
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

// SyncCheck is a check of readiness that also counts for liveness, with grace (PRC-52).
func SyncCheck(name string, awaited func() []string, log logr.Logger) Check {
	ready := Awaited(awaited)
	return Check{Name: name, Live: WithGrace(ready, log, clock.RealClock{}), Ready: ready}
}

// LockCheck is a check of readiness that fails if a function that takes locks, and does nothing else, does not return for
// a minute: a process that waits for a lock for ever looks healthy, and does nothing (PRC-59). Each probe calls the
// function anew, unless the last call has not returned.
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

// ContactCheck is a check of readiness that fails when the watch of a kind has been silent for longer than longest; 0 means that it never fails.
// It detects a process that still answers, but from a state that may be outdated.
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
