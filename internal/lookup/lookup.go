// Package lookup gets objects from a cache, and asks the API server about those that the cache does not have (WB-9 of the webhooks'
// contract): what was created a moment ago may not have come to the cache yet, and a wrong "not found" would refuse what is right.
//
// What one namespace makes it ask is bounded. Beyond that the cache's word counts.
package lookup

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/limit"
)

// Getter reads single objects.
type Getter interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
}

// budget is for each namespace: a Deployment that comes with its ServiceAccount makes some Pods before the cache has it, and asks about
// each of them once.
var budget = limit.Options{PerSecond: 5, Burst: 20, Clients: 1000}

// Reader implements Getter.
type Reader struct {
	cached, live Getter
	budgets      *limit.Limiter
}

// New returns a reader.
func New(cached, live Getter, clock clock.PassiveClock) *Reader {
	options := budget
	options.Clock = clock
	return &Reader{cached, live, limit.New(options)}
}

// Get implements Getter. An object that the cache does not have is read from the API server, once.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.cached.Get(ctx, key, object, options...)
	if apierrors.IsNotFound(err) && r.budgets.Allow(cmp.Or(key.Namespace, key.Name)) {
		return r.live.Get(ctx, key, object, options...)
	}
	return err
}
