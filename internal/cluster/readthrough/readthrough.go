// Package readthrough reads objects from a cache, and from the API server if the cache does not have them (WB-9 of
// the webhooks' contract): a new object may not have reached the cache yet, and a wrong "not found" would refuse a
// valid request.
//
// Such reads wait in a queue, in which the namespaces take turns.
package readthrough

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/ratelimit"
)

// Getter reads single objects.
type Getter interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
}

// Reader implements Getter.
type Reader struct {
	cached, live Getter
	queue        *ratelimit.Queue
}

// New returns a reader whose requests wait in a queue, by namespace.
func New(cached, live Getter, queue *ratelimit.Queue) *Reader { return &Reader{cached, live, queue} }

// Get implements Getter. An object that the cache does not have is read from the API server, once.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.cached.Get(ctx, key, object, options...)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return r.queue.Do(ratelimit.WithClient(ctx, cmp.Or(key.Namespace, key.Name)), func(ctx context.Context) error {
		return r.live.Get(ctx, key, object, options...)
	})
}

// shared is a client.Reader whose requests wait in a queue.
type shared struct {
	live  client.Reader
	queue *ratelimit.Queue
}

// Shared returns a reader whose requests wait in a queue, by the client in their context (ratelimit.WithClient).
func Shared(live client.Reader, queue *ratelimit.Queue) client.Reader { return shared{live, queue} }

// Get implements client.Reader.
func (s shared) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return s.queue.Do(ctx, func(ctx context.Context) error { return s.live.Get(ctx, key, object, options...) })
}

// List implements client.Reader.
func (s shared) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return s.queue.Do(ctx, func(ctx context.Context) error { return s.live.List(ctx, list, options...) })
}
