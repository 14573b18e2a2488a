package ratelimit

import "context"

type clientKey struct{}

// WithClient stores in a context for which client it is, for a Queue that shares lookups between clients: first the
// part that a client works for, such as a seed, and last the client's own name.
func WithClient(ctx context.Context, path ...string) context.Context {
	return context.WithValue(ctx, clientKey{}, path)
}

// ClientOf returns the client of a context. It is empty for work that a process does for no client.
func ClientOf(ctx context.Context) []string {
	path, _ := ctx.Value(clientKey{}).([]string)
	return path
}
