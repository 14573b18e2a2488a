package agent

import (
	"context"
	"errors"
)

// ErrUnseen reports an object that has not been seen yet, and was not to be read.
var ErrUnseen = errors.New("the object has not been seen yet, and is not read")

type withoutReads struct{}

// WithoutReads is a context for questions that send no request.
func WithoutReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutReads{}, true)
}

// MayRead reports whether a question may send a request.
func MayRead(ctx context.Context) bool { return ctx.Value(withoutReads{}) == nil }
