package endpointslicehints

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/clock"
)

const (
	// knownFor is the time for which the version is cached: hints that are set for that long after an upgrade do no
	// harm.
	knownFor = 10 * time.Minute
	// retryAfter is the pause after a failure.
	retryAfter = 10 * time.Second
	// patience is the time limit of the request for the version, as an admission request waits for it.
	patience = time.Second
)

// superseding is the first version in which Services keep traffic in its zone without hints (R7).
var superseding = version.MajorMinor(1, 32)

// Versions reports whether the target needs no hints, according to its version.
//
// Invariant: superseded is the last result; before the first one, hints are set. One request at a time reads the
// version, with no lock held, and the others use the last result.
type Versions struct {
	// Ask reads the target's version, such as "v1.31.2".
	Ask   func(context.Context) (string, error)
	Clock clock.PassiveClock

	mu         sync.Mutex
	superseded bool
	// next is the time from which on the version is read again.
	next time.Time
}

// Superseded reports whether the target needs no hints.
func (v *Versions) Superseded(ctx context.Context) bool {
	if superseded, due := v.claim(); !due {
		return superseded
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := v.Ask(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil {
		var parsed *version.Version
		if parsed, err = version.ParseSemantic(text); err == nil {
			v.superseded, v.next = parsed.AtLeast(superseding), v.Clock.Now().Add(knownFor)
		}
	}
	return v.superseded
}

// claim returns the last result. due means that the caller has to read the version again; it is true for one caller
// per retry.
func (v *Versions) claim() (superseded, due bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.Clock.Now()
	if now.Before(v.next) {
		return v.superseded, false
	}
	v.next = now.Add(retryAfter)
	return v.superseded, true
}
