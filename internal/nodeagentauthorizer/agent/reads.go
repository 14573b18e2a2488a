package agent

import (
	"context"
	"errors"
)

// ErrUnseen reports an object that was not observed yet, and must not be read.
var ErrUnseen = errors.New("the object has not been seen yet, and is not read")

type withoutReads struct{}

// WithoutReads returns a context for decisions that must not send a request.
func WithoutReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutReads{}, true)
}

// MayRead reports whether a decision may send a request.
func MayRead(ctx context.Context) bool { return ctx.Value(withoutReads{}) == nil }
