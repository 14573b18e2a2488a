package target

import (
	"sync"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// eraPause is the least time between two times at which everything is listed anew because resource versions were
	// turned back. An aggregated API that counts backwards all the time must not cost more than a list of each kind in
	// that time, and it doubles while proofs go on, up to eraPauseMost.
	eraPause     = time.Minute
	eraPauseMost = time.Hour
)

// eras are the times between restores of the target. That resource versions were turned back is proven for a scope by
// its list, and for an object by the answer to a request. It is true of all: a watch that was resumed from a version
// which the restored store took for one of its own tells nothing of what was lost, and no list of that kind that comes
// later need contradict what is known.
//
// Invariant: after a proof each scope is listed from nothing, in a list that began after the proof, within the pause;
// proofs by what was known before that prove nothing more.
type eras struct {
	mu    sync.Mutex
	began time.Time
	pause time.Duration
	// due begins the next era; nil if none is due.
	due *time.Timer
}

// versionsWentBackwards takes the proof that resource versions were turned back. prover is the scope that is looked at
// anew already; nil for none.
func (w *Watches) versionsWentBackwards(prover *scope) {
	if w.eras.prove(w.panicked.guarding(func() { w.renew(nil) })) {
		w.renew(prover)
	}
}

// prove reports whether an era begins now; else one is due that begins with later.
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

// renew begins an era: whatever is known is in doubt, and each scope is listed from nothing. It is forgotten when that
// was true after what followed the scopes is heeded no more, as that reports the former era, and before they are
// listed: what the lists tell is of this one.
func (w *Watches) renew(prover *scope) {
	w.log.Info("Resource versions of the target went backwards; listing all kinds again")
	followed := []*activeWatch{w.autoscalers.active}
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
