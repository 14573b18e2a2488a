package target

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unservedRetry is the interval between lookups of a kind that the target does not serve (MRT-9).
const unservedRetry = 10 * time.Second

// lookForKinds looks up the kinds that watches wait for, and wakes the watches whose kinds are served now. It sends
// one request for each group and version, regardless of how many watches wait for its kinds.
func (w *Watches) lookForKinds(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(unservedRetry):
		}
		for gv, waiting := range w.waiting() {
			go w.lookFor(ctx, gv, waiting)
		}
	}
}

// waiting returns the watches that wait for their kinds to be served.
func (w *Watches) waiting() map[schema.GroupVersion]map[schema.GroupVersionKind][]*activeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[schema.GroupVersion]map[schema.GroupVersionKind][]*activeWatch{}
	for s, a := range w.active {
		if !a.waits.Load() {
			continue
		}
		gv := s.gvk.GroupVersion()
		if all[gv] == nil {
			all[gv] = map[schema.GroupVersionKind][]*activeWatch{}
		}
		all[gv][s.gvk] = append(all[gv][s.gvk], a)
	}
	return all
}

// lookFor reads the kinds of a group and version. After an error, the next request follows after unservedRetry.
func (w *Watches) lookFor(ctx context.Context, gv schema.GroupVersion,
	waiting map[schema.GroupVersionKind][]*activeWatch) {
	answer, err := w.client.mappings.discoverOnce(ctx, gv)
	if err != nil {
		return
	}
	for gvk, watches := range waiting {
		if served, fresh := w.client.mappings.remember(gvk, answer); served == nil && fresh {
			continue
		}
		for _, a := range watches {
			a.wake()
		}
	}
}

// wake makes a watch that waits for its kind look it up at once.
func (a *activeWatch) wake() {
	select {
	case a.served <- struct{}{}:
	default:
	}
}
