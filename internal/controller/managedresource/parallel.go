package managedresource

import (
	"context"
	"sync"
)

const (
	// perRun limits the requests of one run at a time, allRuns those of all runs. Twice what two cores of an API server work
	// off in parallel keeps it busy; more only lengthens its queue.
	perRun  = 16
	allRuns = 32
	// reserved are the requests that each run may have in flight whatever the others do: a run whose requests hang must not
	// keep the others from sending any.
	reserved = 2
)

// parallel does n pieces of work side by side, within the limits of a run and of all runs, and returns how many were begun:
// fewer than n only if the context ended.
func (r *Reconciler) parallel(ctx context.Context, n int, work func(int)) int {
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
			work(i)
		})
	}
	return n
}
