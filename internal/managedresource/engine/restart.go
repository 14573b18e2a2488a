package engine

import (
	"context"
	"errors"
	"time"

	"github.com/espalier-project/espalier/internal/controller/kit"
)

const (
	// restartPause is the shortest time between two restarts of the engine because a store was restored. It doubles
	// with each restart, up to restartPauseMost: an aggregated API whose resource versions decrease looks like a
	// restore again and again.
	restartPause     = time.Minute
	restartPauseMost = time.Hour
)

// restored is the error of a run that found that a store was restored to an earlier state.
type restored struct{ proof string }

func (r restored) Error() string { return "a store was restored to an earlier state: " + r.proof }

// Start runs the engine until the context ends. If the store of the source or of the target was restored to an
// earlier state, the engine restarts, because everything in memory may be wrong (MRB-47).
func (e *Engine) Start(ctx context.Context) error {
	defer e.events.End() // All senders of Events have ended by then.
	var began time.Time
	for pause := time.Duration(0); ; began = e.Clock.Now() {
		r := e.present()
		err := kit.Run(ctx, e.Manager, func(group *kit.Group) error {
			if err := group.Add(leaderOnly{func(ctx context.Context) error { return r.awaitRestore(ctx, began.Add(pause)) }}); err != nil {
				return err
			}
			return r.start(group)
		})
		var proved restored
		if !errors.As(err, &proved) || ctx.Err() != nil {
			return err
		}
		e.Log.Info("The store of a cluster is older than what was read from it, as after a restore of etcd; starting anew",
			"reason", proved.proof)
		if pause = min(2*pause, restartPauseMost); pause == 0 || e.Clock.Since(began) > 2*pause {
			pause = restartPause
		}
		next, err := e.newRun()
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.current = next
		e.mu.Unlock()
	}
}

// storeRestored reports the proof that a store was restored. Only the first proof counts.
func (r *run) storeRestored(proof string) {
	select {
	case r.restored <- proof:
	default:
	}
}

// awaitRestore returns an error once a store was restored, but not before the time earliest.
func (r *run) awaitRestore(ctx context.Context, earliest time.Time) error {
	select {
	case <-ctx.Done():
		return nil
	case proof := <-r.restored:
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(earliest.Sub(r.Clock.Now())):
			return restored{proof}
		}
	}
}
