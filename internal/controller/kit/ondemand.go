package kit

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Host is a manager that runs the same controllers for many targets. Their workers exist only while there is work, and their queues have no
// goroutines: of a hundred targets ninety-nine have nothing to do. A panic ends the target's controllers, not the process.
type Host interface {
	manager.Manager
	// Panicked receives the cause of a reconciliation's panic; the host ends everything that it runs for the target.
	Panicked(cause any)
}

// hostOf returns the host that a controller is added to; nil if it has workers of its own.
func hostOf(mgr manager.Manager) Host {
	if group, is := mgr.(*Group); is {
		mgr = group.Manager
	}
	host, _ := mgr.(Host)
	return host
}

// onDemand is a controller whose workers begin with work and end without.
//
// Invariant: there are no more workers than the limit, and as many as the limit if that many requests are ready.
type onDemand[R comparable] struct {
	name       string
	reconciler reconcile.TypedReconciler[R]
	limit      int
	sync       time.Duration
	sources    []source.TypedSource[R]
	queue      *demand[R]
	host       Host
	log        logr.Logger

	mu      sync.Mutex
	workers int
	running sync.WaitGroup
	// open is nil until the sources are complete, and once the controller ends.
	open context.Context
}

// newOnDemand returns a controller for a host; nothing of it is in a table of the whole process.
func newOnDemand[R comparable](host Host, name string, options controller.TypedOptions[R], sources []source.TypedSource[R]) *onDemand[R] {
	c := &onDemand[R]{
		name: name, reconciler: options.Reconciler, limit: max(1, options.MaxConcurrentReconciles), sync: options.CacheSyncTimeout,
		sources: sources, host: host, log: host.GetLogger().WithValues("controller", name),
	}
	c.queue = newDemand(options.RateLimiter, c.dispatch)
	return c
}

// Start implements manager.Runnable.
func (c *onDemand[R]) Start(ctx context.Context) error {
	defer c.queue.ShutDown()
	for _, s := range c.sources {
		if err := s.Start(ctx, c.queue); err != nil {
			return fmt.Errorf("controller %s: %w", c.name, err)
		}
	}
	if err := c.await(ctx); err != nil {
		return err
	}
	c.begin(ctx)
	<-ctx.Done()
	c.end()
	c.running.Wait()
	return nil
}

// await waits until all sources have delivered their initial objects.
func (c *onDemand[R]) await(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.sync)
	defer cancel()
	for _, s := range c.sources {
		syncing, is := s.(source.TypedSyncingSource[R])
		if !is {
			continue
		}
		if err := syncing.WaitForSync(limited); err != nil && ctx.Err() == nil {
			return fmt.Errorf("controller %s: %w", c.name, err)
		}
	}
	return nil
}

// begin has workers begin from now on.
func (c *onDemand[R]) begin(ctx context.Context) {
	c.mu.Lock()
	c.open = ctx
	c.mu.Unlock()
	c.dispatch()
}

// end has no worker begin any more.
func (c *onDemand[R]) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = nil
}

// dispatch begins as many workers as there are requests, within the limit.
func (c *onDemand[R]) dispatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open != nil && c.workers < c.limit && c.workers < c.queue.due() {
		ctx := c.open
		c.workers++
		c.running.Go(func() { c.work(ctx) })
	}
}

// work reconciles until nothing is ready.
func (c *onDemand[R]) work(ctx context.Context) {
	for {
		request, found := c.take(ctx)
		if !found {
			return
		}
		c.reconcile(ctx, request)
	}
}

// take returns the next request. Without one the worker ends.
func (c *onDemand[R]) take(ctx context.Context) (request R, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		request, found = c.queue.take()
	}
	if !found {
		c.workers--
	}
	return request, found
}

func (c *onDemand[R]) reconcile(ctx context.Context, request R) {
	defer c.queue.Done(request)
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error(nil, "Observed a panic", "request", fmt.Sprint(request), "type", fmt.Sprintf("%T", cause), "stack", string(debug.Stack()))
			c.host.Panicked(cause)
		}
	}()
	result, err := c.reconciler.Reconcile(log.IntoContext(ctx, c.log.WithValues("request", fmt.Sprint(request))), request)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			c.log.Error(err, "Reconciler error", "request", fmt.Sprint(request))
		}
		if !errors.Is(err, reconcile.TerminalError(nil)) {
			c.queue.AddRateLimited(request)
		}
	case result.RequeueAfter > 0:
		c.queue.Forget(request)
		c.queue.AddAfter(request, result.RequeueAfter)
	default:
		c.queue.Forget(request)
	}
}
