package endpointslicehints

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/clock"
)

const (
	// knownFor is the lifetime of an answer about the version: after an upgrade, hints that are set for so much longer
	// do no harm.
	knownFor = 10 * time.Minute
	// retryAfter is the pause after a failure.
	retryAfter = 10 * time.Second
	// patience bounds the question, as a request waits for it.
	patience = time.Second
)

// superseding is the version from which on Services do it themselves (R7).
var superseding = version.MajorMinor(1, 32)

// Versions reports whether the target does without hints, by its version.
//
// Its invariant: superseded is the last answer; before the first one, hints are set, as the switch says. One request
// at a time asks, with no lock held, and the others use the last answer.
type Versions struct {
	// Ask returns the target's version, such as "v1.31.2".
	Ask   func(context.Context) (string, error)
	Clock clock.PassiveClock

	mu         sync.Mutex
	superseded bool
	// next is the time of the next question.
	next time.Time
}

// Superseded reports whether the target does without hints.
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

// claim returns the last answer. due asks the caller to ask again; it is true for one caller per retry.
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
