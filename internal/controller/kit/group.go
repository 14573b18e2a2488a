package kit

import (
	"context"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Group is a manager that runs its runnables itself, until its context ends or the first of them fails. It is for
// runnables that are added while the manager runs, as on the leader.
//
// The manager's own Add holds a lock while it passes a runnable to a goroutine. A process that receives the stop
// signal at that moment waits for the lock, and so does the goroutine: a deadlock of all three.
type Group struct {
	manager.Manager

	ctx   context.Context
	group *errgroup.Group
}

// Context returns the context of the group.
func (g *Group) Context() context.Context { return g.ctx }

// Add runs a runnable.
func (g *Group) Add(runnable manager.Runnable) error {
	g.group.Go(func() error { return runnable.Start(g.ctx) })
	return nil
}

// Run calls a function that adds runnables to a group, and returns when all of them have ended, with the first error.
func Run(ctx context.Context, mgr manager.Manager, add func(*Group) error) error {
	group, ctx := errgroup.WithContext(ctx)
	g := &Group{Manager: mgr, ctx: ctx, group: group}
	group.Go(func() error { return add(g) })
	return group.Wait()
}
