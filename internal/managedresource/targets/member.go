package targets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/managedresource/targets/holding"
)

const (
	// again is the retry interval of a target that could not begin, in addition to the tries after changes of its
	// Secrets.
	again = 30 * time.Second
	// firstPause is the pause of a target after its engine panicked or failed. It doubles up to lastPause while the
	// engine goes on to fail.
	firstPause, lastPause = 10 * time.Second, 5 * time.Minute
	// silence limits the time in which a target answers no request before its engine rests, and silenceLook is the
	// interval of checking that. A control plane that moves to another Node is away for less than silence.
	silence, silenceLook = 5 * time.Minute, time.Minute
	// probeTimeout limits the request that reports whether a target answers.
	probeTimeout = 10 * time.Second
	// endTimeout limits a member's wait for the end of an engine. An engine that panicked while it held a lock never
	// ends; it sends no more requests, because all its work has a context that has ended.
	endTimeout = 15 * time.Second
)

// State is the state of a target in metrics and Events.
type State string

// States of targets.
const (
	StateStarting    State = "Starting"
	StateRunning     State = "Running"
	StateNoAccess    State = "NoCredentials"
	StateInvalid     State = "InvalidCredentials"
	StateLeased      State = "LeaseHeld"
	StateUnreachable State = "Unreachable"
	StateFailed      State = "Failed"
	StatePanicked    State = "Panicked"
)

// Errors that end the engine of a target.
var (
	errChanged     = errors.New("the credentials of the target have changed")
	errUnreachable = errors.New("the target has not answered for a while")
	errPanicked    = errors.New("the engine of the target panicked")
)

// member supervises one target whose Lease the process takes: one goroutine, and one engine at a time.
type member struct {
	*Targets
	*candidate
	// news is that the credentials may be others; settled is closed once the engine may start.
	changed, complete chan struct{}
	stop              context.CancelFunc
	done              chan struct{}
	pause             time.Duration

	// renewal guards the Lease of the target.
	renewal sync.Mutex
	lock    resourcelock.Interface
	record  resourcelock.LeaderElectionRecord
}

// notify wakes the reader of a channel, which has room for one event.
func notify(reader chan<- struct{}) {
	select {
	case reader <- struct{}{}:
	default:
	}
}

// run takes the Lease of the target and manages the target until the context ends.
func (m *member) run(ctx context.Context, take holding.Take) {
	defer close(m.done)
	ctx = of(ctx, m.name)
	defer m.left(ctx)
	if !m.take(ctx, take) {
		return
	}
	m.state(ctx, StateStarting, nil)
	select {
	case <-ctx.Done():
		return
	case <-m.complete:
	}
	for ctx.Err() == nil {
		m.state(ctx, StateStarting, nil)
		began := m.Clock.Now()
		state, err := m.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errChanged) {
			continue
		}
		m.state(ctx, state, err)
		m.wait(ctx, state, m.Clock.Now().Sub(began))
	}
}

// left ends the work for the target, and releases its Lease.
func (m *member) left(ctx context.Context) {
	m.giveBack(ctx)
	m.Metrics.Forget(m.namespace)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics.forget(m.name)
	delete(m.members, m.namespace)
	m.holdings.Drop(m.namespace)
}

// wait rests until it makes sense to try again.
func (m *member) wait(ctx context.Context, state State, lasted time.Duration) {
	rest := kit.Jitter(again)
	if state == StatePanicked || state == StateFailed {
		if lasted > 2*lastPause {
			m.pause = 0
		}
		m.pause = min(max(firstPause, 2*m.pause), lastPause)
		rest = kit.Jitter(m.pause)
	}
	changed := m.changed
	if state == StatePanicked {
		changed = nil // Other credentials do not make it safe.
	}
	timer := m.Clock.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-changed:
	}
}

// attempt connects to the target and runs its engine. It returns what state the target is in then, and why.
func (m *member) attempt(ctx context.Context) (State, error) {
	found, err := m.resolve(ctx)
	switch {
	case errors.Is(err, errNoCredentials):
		return StateNoAccess, err
	case err != nil:
		return StateInvalid, err
	}
	reached, err := m.connect(found)
	if err != nil {
		return StateInvalid, err
	}
	defer reached.close()
	if err := reached.probe(ctx); err != nil {
		return StateUnreachable, err
	}
	return m.runEngine(ctx, found, reached)
}

// reached is a target to which there are connections.
type reached struct {
	cluster.Connection
	transport *transport
	share     *answers.Share
	end       func()
}

func (r *reached) close() {
	r.share.Leave()
	r.end()
}

// connect returns the connections to the target, within its limits. It sends nothing.
func (m *member) connect(found *credentials) (*reached, error) {
	dialled, err := m.Dial(found.config)
	if err != nil {
		return nil, err
	}
	own, limits := m.Config.For(m.namespace, found.overrides), &m.Config.Targets.Limits
	restConfig := rest.CopyConfig(found.config)
	connection := own.TargetClientConnection
	restConfig.QPS, restConfig.Burst = connection.QPS, int(connection.Burst)
	restConfig.AcceptContentTypes, restConfig.ContentType = connection.AcceptContentTypes, connection.ContentType
	restConfig.WarningHandlerWithContext = cluster.NewWarnings(m.Clock)
	restConfig.UserAgent = rest.DefaultKubernetesUserAgent()
	if restConfig.QPS > 0 {
		restConfig.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(restConfig.QPS, restConfig.Burst)
	}
	rateOfWatches := limits.WatchBytesPerSecond.Value()
	t := &transport{
		inner: dialled.Inner, bulk: dialled.Bulk, places: make(chan struct{}, *limits.RequestsInFlight),
		watched: rate.NewLimiter(rate.Limit(rateOfWatches), int(watchBurst*rateOfWatches)), clock: m.Clock,
		refused: m.refused,
	}
	t.token.Store(&found.token)
	share := m.budget.Share(limits.BytesInFlight.Value())
	bounded := &answers.Transport{Inner: t, Types: m.types, Share: share}
	return &reached{cluster.Connection{REST: restConfig, HTTP: &http.Client{Transport: bounded}}, t, share, dialled.End},
		nil
}

// watchBurst is the number of seconds whose events a target may send at once, at its rate.
const watchBurst = 8

// probe asks for the version of the API server: whether it answers and takes the credentials.
func (r *reached) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	url, _, err := rest.DefaultServerUrlFor(r.REST)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("version").String(), nil)
	if err != nil {
		return err
	}
	response, err := r.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the API server answers with %s", response.Status)
	}
	return nil
}

// runEngine runs an engine until something ends it.
func (m *member) runEngine(ctx context.Context, found *credentials, reached *reached) (State, error) {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	panicked := func(cause any) {
		m.log.Error(nil, "Observed a panic in the work for a target", "type", fmt.Sprintf("%T", cause), "stack",
			string(debug.Stack()))
		end(errPanicked)
	}
	seen := &view{Cache: m.Manager.GetCache(), namespace: m.namespace, feed: m.feed, panicked: panicked}
	defer seen.end()
	ended, err := m.begin(running, found, reached, seen, panicked)
	if err != nil {
		return StateFailed, err
	}
	m.state(ctx, StateRunning, nil)
	notify(m.begun)
	err = m.supervise(running, end, ended, found, reached)
	end(err)
	select {
	case last := <-ended:
		if last != nil {
			m.log.V(1).Info("The engine of the target has ended", "reason", last.Error())
		}
	case <-time.After(endTimeout):
		m.log.Info("The engine of the target does not end; it sends no more requests")
	}
	switch cause := context.Cause(running); {
	case ctx.Err() != nil:
		return StateStarting, ctx.Err()
	case errors.Is(cause, errPanicked):
		m.metrics.panics.WithLabelValues(m.name).Inc()
		return StatePanicked, errPanicked
	case errors.Is(cause, errUnreachable):
		return StateUnreachable, err
	case errors.Is(cause, errNoCredentials):
		return StateNoAccess, cause
	case errors.Is(cause, errChanged):
		return StateStarting, errChanged
	default:
		return StateFailed, err
	}
}

// begin starts the engine; the channel gets its error when it ends.
func (m *member) begin(ctx context.Context, found *credentials, reached *reached, seen *view,
	panicked func(any)) (<-chan error, error) {
	e, err := engine.New(engine.Options{
		Config:  m.Config.For(m.namespace, found.overrides),
		Manager: &host{Manager: m.Manager, view: seen, log: m.log, panicked: panicked},
		Source:  m.Source, Target: reached.Connection, Clock: m.Clock, Log: m.log,
		Shared: &engine.Shared{
			Namespace: m.namespace, Secrets: m.Secrets, Identity: m.identity, Metrics: m.Metrics, Requests: m.Requests,
			Turns: m.Turns, Stop: m.Stop, Panicked: panicked,
		},
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		defer func() {
			if cause := recover(); cause != nil {
				panicked(cause)
			}
		}()
		ended <- e.Start(ctx)
	}()
	return ended, nil
}

// supervise waits until the engine is to end, and returns why.
func (m *member) supervise(ctx context.Context, end func(error), ended <-chan error, found *credentials,
	reached *reached) error {
	look := m.Clock.NewTicker(silenceLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			return fmt.Errorf("the engine of the target has ended: %w", err)
		case <-look.C():
			if reached.transport.silentFor() < silence {
				continue
			}
			if err := reached.probe(ctx); err != nil {
				end(errUnreachable)
				return fmt.Errorf("%w: %w", errUnreachable, err)
			}
		case <-m.changed:
			if err := m.renew(ctx, found, reached); err != nil {
				return err
			}
		}
	}
}

// renew takes the present credentials over. Another token is used at once; anything else ends the engine, and so does
// that there are none. Credentials that cannot be read change nothing.
func (m *member) renew(ctx context.Context, found *credentials, reached *reached) error {
	now, err := m.resolve(ctx)
	switch {
	case errors.Is(err, errNoCredentials):
		return err
	case err != nil:
		m.log.Error(err, "The credentials of the target cannot be used; the former credentials are used")
		return nil
	case now.digest != found.digest:
		return errChanged
	}
	reached.transport.token.Store(&now.token)
	return nil
}

// state notes and logs the state of the target, and writes the Event about it.
func (m *member) state(ctx context.Context, state State, why error) {
	m.mu.Lock()
	tell := m.stateLocked(ctx, m.candidate, state, why)
	m.mu.Unlock()
	tell()
}

// stateLocked notes and logs the state of a target. The function that it returns writes an Event if the target is not
// managed, or managed again.
func (t *Targets) stateLocked(ctx context.Context, c *candidate, state State, why error) (tell func()) {
	if !t.metrics.set(c.name, state, t.Clock.Now()) {
		return func() {}
	}
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: c.namespace, Namespace: c.namespace,
		UID: c.uid}
	warned := c.warned
	switch state {
	case StateStarting:
	case StateRunning:
		c.log.Info("The target is managed")
		if c.warned = false; warned { // A start is no news.
			return func() {
				t.notes.Tell(ctx, about, corev1.EventTypeNormal, "Target"+string(state),
					"The ManagedResources of the target are looked after")
			}
		}
	default:
		c.warned = true
		c.log.Info("The target is not managed", "state", state, "reason", why.Error())
		return func() {
			t.notes.Tell(ctx, about, corev1.EventTypeWarning, "Target"+string(state),
				"The ManagedResources of the target are not looked after: "+why.Error())
		}
	}
	return func() {}
}
