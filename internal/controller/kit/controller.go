// Package kit has the parts that all controllers share.
package kit

import (
	"fmt"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Add adds a controller to a manager, together with all its sources; options.Reconciler is required.
//
// The library's builder adds the controller first, and then its sources one by one. If the manager is already
// running, the controller starts with the first source alone and holds its lock until that source is synced, and the
// other sources wait for the lock.
func Add[R comparable](mgr manager.Manager, name string, options controller.TypedOptions[R], sources ...source.TypedSource[R]) error {
	return AddSharing(mgr, []string{name}, options, sources...)
}

// AddSharing is Add for several controllers that share one queue. The first one fills it.
func AddSharing[R comparable](mgr manager.Manager, names []string, options controller.TypedOptions[R], sources ...source.TypedSource[R]) error {
	options.DefaultFromConfig(mgr.GetControllerOptions())
	queue := sync.OnceValue(func() workqueue.TypedRateLimitingInterface[R] { return newTurns(names[0], options.RateLimiter) })
	options.NewQueue = func(string, workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] { return queue() }
	for _, name := range names {
		c, err := controller.NewTypedUnmanaged(name, options)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		for _, s := range sources {
			if err := c.Watch(s); err != nil {
				return fmt.Errorf("controller %s: %w", name, err)
			}
		}
		sources = nil
		if err := mgr.Add(c); err != nil {
			return err
		}
	}
	return nil
}
