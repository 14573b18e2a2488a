package target

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// recheckAfter is the pause between the begin of a watch and its recheck, in which the events of the gap arrive.
	recheckAfter = 3 * time.Second
	// recheckAtMost bounds the pause, which doubles while rechecks fail or find changes. A sync period is longer.
	recheckAtMost = 48 * time.Second
)

// recheck lists a scope once more soon after its watch has begun (MRB-47). kube-apiserver accepts a watch from a
// revision that a restored etcd has not reached yet, and etcd has lost events of watches that began: the list shows
// both. A list that is no newer than the begin of the watch may be the answer of a store that lags, and is repeated,
// at most until the pause has grown to recheckAtMost.
func (w *Watches) recheck(ctx context.Context, s scope, a *activeWatch, begun string) {
	for pause := a.nextRecheck(); ; pause *= 2 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(pause, recheckAtMost)):
		}
		version, missed, err := w.auditScope(ctx, s, nil)
		a.rechecked(err == nil && !missed)
		if err == nil && (missed || isLater(version, begun) || 2*pause >= recheckAtMost) {
			return
		}
		if err != nil {
			w.log.V(1).Info("Could not recheck a kind", "groupVersionKind", s.gvk.String(), "reason", err.Error())
		}
	}
}

// isLater returns false if a list is known to be no newer than the begin of its watch. An aggregated API may count in
// its own way.
func isLater(list, begun string) bool {
	order, err := resourceversion.CompareResourceVersion(list, begun)
	return err != nil || order > 0
}

func (a *activeWatch) nextRecheck() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(a.recheckPause, recheckAfter)
}

// rechecked sets the pause before the next recheck: a watch that lags would otherwise be taken for one that lost
// events, again and again.
func (a *activeWatch) rechecked(complete bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if complete {
		a.recheckPause = recheckAfter
	} else {
		a.recheckPause = min(2*max(a.recheckPause, recheckAfter), recheckAtMost)
	}
}
