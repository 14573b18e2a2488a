package limit

import "context"

type clientKey struct{}

// WithClient notes in a context whose question it is about, for whoever looks something up for the answer.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns whose question it is, and whether it is anybody's: what a process does of its own accord has no client.
func ClientOf(ctx context.Context) (string, bool) {
	client, is := ctx.Value(clientKey{}).(string)
	return client, is
}
