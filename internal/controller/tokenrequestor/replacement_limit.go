package tokenrequestor

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// replacements is the number of early replacements of a Secret's token without a pause, for tokens that are lost
	// by accident.
	replacements = 2
	// replacementPause is the time until one more may be replaced. A target that removes each written token costs six
	// tokens and six writes of the source an hour, and its users wait no longer than this for the next token.
	replacementPause = 10 * time.Minute
)

// replacementLimit limits the rate at which the token of a Secret is replaced early (TR-24: no issuing in a tight
// loop).
//
// Each write to the source is an event that enqueues the Secret again. If a mutating webhook of the target, for
// example, changes the written Secret, each run would find a reason to issue another token. A restart loses the
// counts, and so allows some more replacements.
type replacementLimit struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	buckets map[types.NamespacedName]*rate.Limiter
}

// pause returns the time until the token of a Secret may be replaced; zero means that it may be replaced now.
func (f *replacementLimit) pause(key types.NamespacedName) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, found := f.buckets[key]
	if !found {
		return 0
	}
	now := f.clock.Now()
	place := bucket.ReserveN(now, 1)
	defer place.CancelAt(now)
	return place.DelayFrom(now)
}

// replaced records that a token was issued before the renewal of the former one was due.
func (f *replacementLimit) replaced(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bucket, found := f.buckets[key]
	if !found {
		bucket = rate.NewLimiter(rate.Every(replacementPause), replacements)
		f.buckets[key] = bucket
	}
	bucket.AllowN(f.clock.Now(), 1)
}

// forget drops the counts of a Secret that is gone.
func (f *replacementLimit) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.buckets, key)
}
