package controller

import (
	"context"
	"sync"

	"github.com/espalier-project/espalier/internal/controller/kit"
)

const (
	// perRun limits the requests of one run at a time, allRuns those of all runs. Twice what two cores of an API server
	// work off in parallel keeps it busy; more only lengthens its queue.
	perRun  = 16
	allRuns = 32
	// reserved are the requests that each run may have in flight whatever the others do: a run whose requests hang must
	// not keep the others from sending any.
	reserved = 2
)

// parallel does n pieces of work side by side, within the limits of a run and of all runs, and returns how many were
// begun: fewer than n only if the context ended. A panic of one piece is its error, which panicked takes; the others
// go on (MRC-12).
func (r *Reconciler) parallel(ctx context.Context, n int, work func(int), panicked func(int, error)) int {
	var running sync.WaitGroup
	defer running.Wait()
	limit, own := make(chan struct{}, perRun), make(chan struct{}, reserved)
	for i := range n {
		select {
		case limit <- struct{}{}:
		case <-ctx.Done():
			return i
		}
		place := own
		select {
		case own <- struct{}{}:
		default:
			select {
			case own <- struct{}{}:
			case r.slots <- struct{}{}:
				place = r.slots
			case <-ctx.Done():
				return i
			}
		}
		running.Go(func() {
			defer func() { <-place; <-limit }()
			defer func() {
				if cause := recover(); cause != nil {
					panicked(i, kit.Recovered(ctx, cause))
				}
			}()
			work(i)
		})
	}
	return n
}

// once returns a function whose first caller does the work for all; other callers wait for the work until the context
// ends.
func once(ctx context.Context, work func() error) func() error {
	var err error
	place, done := make(chan struct{}, 1), false
	return func() error {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-place }()
		if !done {
			err = work()
			done = true
		}
		return err
	}
}
