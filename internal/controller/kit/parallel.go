package kit

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Parallel does n pieces of work, so many at once, and returns the errors of those that failed, in their order. All are attempted, whatever
// fails, unless the context ends: then no more is begun, and its error is the last one. A panic is the error of its piece of work: where the
// work runs nobody else would catch it, and the process would end (COM-5).
func Parallel(ctx context.Context, atOnce, n int, work func(i int) error) []error {
	var running sync.WaitGroup
	places, failed := make(chan struct{}, atOnce), make([]error, n)
	for i := range n {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if failed[i] = ctx.Err(); failed[i] != nil {
			break
		}
		running.Go(func() {
			defer func() { <-places }()
			failed[i] = recovered(func() error { return work(i) })
		})
	}
	running.Wait()
	return slices.DeleteFunc(failed, func(err error) bool { return err == nil })
}

// recovered returns a panic as an error that says where it was.
func recovered(work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v [recovered]\n%s", p, debug.Stack())
		}
	}()
	return work()
}
