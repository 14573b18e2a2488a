package target

import (
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// eraPause is the shortest time between two complete lists of everything because resource versions were turned
	// back. It doubles while proofs go on, up to eraPauseMost: an aggregated API that counts backwards all the time
	// must not cost more than a list of each kind in that time.
	eraPause     = time.Minute
	eraPauseMost = time.Hour
)

// eras are the times between restores of the target. The list of a scope, or the answer to a request for an object,
// proves that resource versions were turned back. The proof counts for all scopes: a watch that was resumed from a
// version which the restored store took for one of its own does not report the lost changes, and no later list of its
// kind need contradict the records.
//
// Invariant: after a proof each scope is listed from nothing, in a list that began after the proof, within the pause;
// proofs from earlier records prove nothing more.
type eras struct {
	mu    sync.Mutex
	began time.Time
	pause time.Duration
	// due begins the next era; nil if none is due.
	due *time.Timer
}

// versionsWentBackwards handles the proof that resource versions were turned back. prover is the scope that is listed
// anew already; nil for none.
func (w *Watches) versionsWentBackwards(prover *scope) {
	if w.eras.prove(func() { w.renew(nil) }) {
		w.renew(prover)
	}
}

// prove reports whether an era begins now; else the next era begins after a pause, with later.
func (e *eras) prove(later func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.due != nil {
		return false
	}
	wait := e.pause - time.Since(e.began)
	if wait <= 0 {
		e.beginLocked()
		return true
	}
	e.due = time.AfterFunc(wait, func() {
		e.mu.Lock()
		e.due = nil
		e.beginLocked()
		e.mu.Unlock()
		later()
	})
	return false
}

func (e *eras) beginLocked() {
	e.pause = min(2*e.pause, eraPauseMost)
	if e.pause == 0 || time.Since(e.began) > e.pause {
		e.pause = eraPause
	}
	e.began = time.Now()
}

// renew begins an era: every record becomes stale, and each scope is listed from nothing. The records are reset after
// the former sessions of the scopes have ended, as those report the former era, and before the scopes are listed: the
// lists report the new era.
func (w *Watches) renew(prover *scope) {
	w.log.Info("Resource versions of the target went backwards; listing all kinds again")
	var followed []*activeWatch
	w.mu.Lock()
	for s, a := range w.active {
		if prover != nil && s == *prover {
			continue
		}
		if a.covers() {
			w.live.expect(s)
		}
		followed = append(followed, a)
	}
	w.mu.Unlock()
	for _, a := range followed {
		a.giveUp()
	}
	w.tracker.VersionsWentBackwards(func(ref objects.Ref) bool { return prover != nil && w.scopeOf(ref) == *prover })
	for _, a := range followed {
		a.beginAnew()
	}
}
