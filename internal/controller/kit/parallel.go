package kit

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Parallel calls work for 0 to n-1, at most atOnce calls at a time, and returns the errors in the order of the calls.
// It makes all calls, even if some fail, unless the context ends: then it starts no more, and the last error is that
// of the context. A panic becomes an error of its call: nothing else would recover it in that goroutine, and the
// process would end (COM-5).
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
			defer func() {
				if cause := recover(); cause != nil {
					failed[i] = Recovered(ctx, cause)
				}
			}()
			failed[i] = work(i)
		})
	}
	running.Wait()
	return slices.DeleteFunc(failed, func(err error) bool { return err == nil })
}

// Recovered logs the cause of a panic and its stack, and returns the error to report. The cause may have content of
// an object, so only causes from the Go runtime become part of the error.
func Recovered(ctx context.Context, cause any) error {
	err := fmt.Errorf("panic with a value of type %T [recovered]", cause)
	if of, is := cause.(runtime.Error); is {
		err = fmt.Errorf("panic: %w [recovered]", of)
	}
	log.FromContext(ctx).Error(err, "Observed a panic", "stack", string(debug.Stack()))
	return err
}
