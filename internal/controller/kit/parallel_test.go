package kit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-project/espalier/test/expect"
)

// TestParallel: all is attempted, never more at once than wanted, and errors come in the order of the work.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most, done := 0, 0, 0
		errs := Parallel(t.Context(), 3, 10, func(i int) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Duration(10-i) * time.Second) // In the bubble, where it takes no time.
			mu.Lock()
			defer mu.Unlock()
			running--
			if done++; i%4 == 0 {
				return fmt.Errorf("%d", i)
			}
			return nil
		})
		expect.True(t, most == 3 && done == 10 && fmt.Sprint(errs) == "[0 4 8]",
			"%d at once, %d done, %v", most, done, errs)
	})
}

// TestParallelEnds: once the context has ended nothing is begun, and what runs is waited for.
func TestParallelEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := 0
	errs := Parallel(ctx, 1, 5, func(i int) error {
		if begun++; i == 1 {
			cancel()
		}
		return nil
	})
	expect.True(t, begun == 2 && len(errs) == 1 && errors.Is(errs[0], context.Canceled), "%d begun, %v", begun, errs)
}

// COM-5: a panic in a piece of work is an error of that one, which passes on only what the runtime says, and ends neither the process nor the others.
func TestParallelPanic(t *testing.T) {
	done := make([]bool, 3)
	errs := Parallel(t.Context(), 2, 3, func(i int) error {
		if done[i] = true; i == 1 {
			panic("content of an object")
		}
		return nil
	})
	expect.True(t, len(errs) == 1 && errs[0].Error() == "panic with a value of type string [recovered]" && done[0] && done[2],
		"got %v, done %v", errs, done)
}
