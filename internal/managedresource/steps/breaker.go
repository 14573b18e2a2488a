package steps

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TooManyTimeouts is the number of timeouts for a kind in one run, with no success in between, after which its other
// objects are not tried: a webhook that hangs costs each of them half a minute.
const TooManyTimeouts = 3

// ErrNotTried is the error of an object that is not tried.
var ErrNotTried = errors.New("the object was not tried, because requests for other objects of its kind took too long; retrying")

// Breaker counts, in one run, the requests for objects of a kind that took too long.
type Breaker struct {
	mu     sync.Mutex
	byKind map[schema.GroupKind]int
}

// IsOpen reports whether objects of a kind are not tried any more.
func (b *Breaker) IsOpen(kind schema.GroupKind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byKind[kind] >= TooManyTimeouts
}

// Record records the result of a request.
func (b *Breaker) Record(kind schema.GroupKind, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		delete(b.byKind, kind)
	case apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "context deadline exceeded"):
		if b.byKind == nil {
			b.byKind = map[schema.GroupKind]int{}
		}
		b.byKind[kind]++
	}
}
