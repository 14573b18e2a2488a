package ratelimit

import "context"

type clientKey struct{}

// WithClient notes in a context whose question it is about, for a Queue that shares look-ups between clients: first whom a client works for, as
// a seed, and last the client's own name.
func WithClient(ctx context.Context, path ...string) context.Context {
	return context.WithValue(ctx, clientKey{}, path)
}

// ClientOf returns whose question it is. It is empty for work that a process does of its own accord.
func ClientOf(ctx context.Context) []string {
	path, _ := ctx.Value(clientKey{}).([]string)
	return path
}
