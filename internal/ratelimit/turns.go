package ratelimit

import (
	"context"
	"sync"
	"time"
)

// Turns let one review at a time use the processor, with pauses in between. Outside interrupts the turn of a review
// that waits.
type Turns struct {
	rest int
	free chan struct{}
}

// NewTurns returns turns. After each turn the processor rests for a multiple of the time of the turn: with 1 half of
// a processor is used, with 7 an eighth.
func NewTurns(rest int) *Turns { return &Turns{rest: rest, free: make(chan struct{}, 1)} }

type turnKey struct{}

type turn struct {
	of *Turns

	mu sync.Mutex
	// outside counts the events that the review waits for; began is the beginning of its turn.
	outside int
	began   time.Time
}

// Begin waits for a turn. It returns a context with the turn, for Outside, and a function that ends the turn.
func (t *Turns) Begin(ctx context.Context) (of context.Context, end func(), err error) {
	its := &turn{of: t}
	if err := its.begin(ctx); err != nil {
		return ctx, nil, err
	}
	return context.WithValue(ctx, turnKey{}, its), its.leave, nil
}

func (t *turn) begin(ctx context.Context) error {
	select {
	case t.of.free <- struct{}{}:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.began = time.Now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends the turn, if it is not interrupted, and gives it to the next one after the rest.
func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaveLocked()
}

func (t *turn) leaveLocked() {
	if t.began.IsZero() {
		return
	}
	worked := time.Since(t.began)
	t.began = time.Time{}
	if rest := worked * time.Duration(t.of.rest); rest > 0 {
		time.AfterFunc(rest, func() { <-t.of.free })
		return
	}
	<-t.of.free
}

// Outside waits without a turn for something other than the processor: other reviews may work meanwhile. Afterwards
// the review needs a turn again. A small review, which has no turn, just waits.
func Outside(ctx context.Context, wait func() error) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil {
		return wait()
	}
	t.mu.Lock()
	if t.outside++; t.outside == 1 {
		t.leaveLocked()
	}
	t.mu.Unlock()
	err := wait()
	t.mu.Lock()
	t.outside--
	back := t.outside == 0
	t.mu.Unlock()
	if back {
		if ended := t.begin(ctx); ended != nil && err == nil {
			err = ended
		}
	}
	return err
}
