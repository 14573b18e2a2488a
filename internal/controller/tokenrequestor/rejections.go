package tokenrequestor

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// firstPause and lastPause bound how long a new token is kept although the target does not accept it (TR-24).
	firstPause = time.Minute
	lastPause  = time.Hour
)

// rejections limits the tokens that are issued by a target that does not accept its own tokens.
//
// For each Secret it has the digest of the last issued token, and the number of such tokens in a row that were
// rejected. Only that token is kept for a pause: any other token in the Secret was written by others, and is replaced
// at once. A restart loses a rejection, which costs one more token.
type rejections struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	issued map[types.NamespacedName]issue
}

type issue struct {
	digest [sha256.Size]byte
	at     time.Time
	// pause is the time until another token may be issued if this one is rejected; it grows with each rejection.
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

// pause returns how long a rejected token is kept; zero or less means that it is replaced now.
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
