package steps

import (
	"context"
	"sync"

	"github.com/espalier-project/espalier/internal/controller/kit"
)

const (
	// PerRun limits the concurrent requests of one run, allRuns those of all runs. Twice as many as two cores of an API
	// server process in parallel keep it busy; more only lengthen its queue.
	PerRun  = 16
	allRuns = 32
	// reserved is the number of requests that each run may always have in flight: a run whose requests hang must not
	// block the others.
	reserved = 2
)

// Limits are the limits of all runs together.
type Limits struct{ slots chan struct{} }

// NewLimits returns Limits with all slots free.
func NewLimits() Limits { return Limits{make(chan struct{}, allRuns)} }

// Parallel does n work items in parallel, within the limits of a run and of all runs, and returns how many it began:
// fewer than n only if the context ended. If an item panics, Parallel calls panicked with the error, and the other
// items continue (MRC-12).
func (l Limits) Parallel(ctx context.Context, n int, work func(int), panicked func(int, error)) int {
	var running sync.WaitGroup
	defer running.Wait()
	limit, own := make(chan struct{}, PerRun), make(chan struct{}, reserved)
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
			case l.slots <- struct{}{}:
				place = l.slots
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

// Once returns a function whose first caller does the work for all; other callers wait for the work until the context
// ends.
func Once(ctx context.Context, work func() error) func() error {
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
