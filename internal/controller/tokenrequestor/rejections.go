package tokenrequestor

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// firstPause and lastPause bound how long a token is kept that the target issued and does not accept (TR-24).
	firstPause = time.Minute
	lastPause  = time.Hour
)

// rejections keeps a target that does not accept its own tokens from being asked for one after the other.
//
// Of each Secret it remembers the last token that was issued, as a digest, and how often in a row such tokens were not accepted. Only that very
// token is kept for a pause: whatever else is in the Secret was put there by others, and is replaced at once. A forgotten rejection, by a
// restart, costs one token more.
type rejections struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	issued map[types.NamespacedName]issue
}

type issue struct {
	digest [sha256.Size]byte
	at     time.Time
	// pause until the next one may be issued if this one is not accepted; it grows with each.
	pause time.Duration
}

// issue records that a token was issued.
func (r *rejections) issue(key types.NamespacedName, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := firstPause
	if before, found := r.issued[key]; found && before.pause > 0 {
		pause = min(2*before.pause, lastPause)
	}
	r.issued[key] = issue{digest: sha256.Sum256([]byte(token)), at: r.clock.Now(), pause: pause}
}

// accepted records that the token of a Secret was accepted.
func (r *rejections) accepted(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.issued, key)
}

// pause returns the time for which a token that was not accepted is kept; zero or less means not at all.
func (r *rejections) pause(key types.NamespacedName, token string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.issued[key]
	if !found || last.digest != sha256.Sum256([]byte(token)) {
		return 0
	}
	return last.at.Add(last.pause).Sub(r.clock.Now())
}

func (r *rejections) forget(key types.NamespacedName) { r.accepted(key) }
