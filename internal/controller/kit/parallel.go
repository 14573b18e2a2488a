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

// Parallel does n pieces of work, at most atOnce at a time, and returns the errors of the failed pieces, in their order. It attempts all pieces, even
// if some fail, unless the context ends: then it begins no more, and the context's error is the last one. A panic is the error of its piece of work: no
// other code would recover it in the goroutine of the piece, and the process would end (COM-5).
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

// Recovered logs the cause of a panic and its stack, and returns the error to report. The cause may be content of an
// object, so that only causes of the runtime itself are passed on.
func Recovered(ctx context.Context, cause any) error {
	err := fmt.Errorf("panic with a value of type %T [recovered]", cause)
	if of, is := cause.(runtime.Error); is {
		err = fmt.Errorf("panic: %w [recovered]", of)
	}
	log.FromContext(ctx).Error(err, "Observed a panic", "stack", string(debug.Stack()))
	return err
}
