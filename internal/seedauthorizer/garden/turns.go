package garden

import (
	"context"
	"errors"
	"slices"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// Queue shares reads between clients.
type Queue interface {
	// Do makes a read when it is the turn of the context's client (ratelimit.WithClient).
	Do(ctx context.Context, read func(context.Context) error) error
}

// ErrUnknownSink reports that nothing was read, because the graph does not have the client's Seed or Shoot: it does
// not exist, or has been created a moment ago (T3-2).
var ErrUnknownSink = errors.New("the client's seed or shoot is not known")

// InTurn makes a read when it is the turn of a user who works for a Seed or Shoot. Turns are first between seeds, or
// between namespaces and then the shoots in them, and last between users, because a gardenlet can create any number
// of users, as ServiceAccounts. All sinks without a name take turns as one. Without a queue no read waits.
func InTurn(ctx context.Context, queue Queue, sink graph.Vertex, user string, read func(context.Context) error) error {
	if queue == nil {
		return read(ctx)
	}
	path := []string{relation.Schema.String(sink), user}
	if sink.Kind == relation.Shoot {
		path = slices.Insert(path, 0, sink.Namespace) // A project has as many Shoots as its members like.
	}
	if sink.Name == "" {
		clear(path[:len(path)-1])
	}
	return queue.Do(ratelimit.WithClient(ctx, path...), read)
}
