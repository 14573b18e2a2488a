package controller

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// tooManyTimeouts is the number of timeouts for a kind in one run, with no success in between, after which its other
// objects are not tried: a webhook that hangs costs each of them half a minute.
const tooManyTimeouts = 3

// errNotTried is the error of an object that is not tried.
var errNotTried = errors.New("the object was not tried, because requests for other objects of its kind took too long; retrying")

// breaker counts, in one run, the requests for objects of a kind that took too long.
type breaker struct {
	mu     sync.Mutex
	byKind map[schema.GroupKind]int
}

func (s *breaker) is(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKind[kind] >= tooManyTimeouts
}

// answered records the result of a request.
func (s *breaker) answered(kind schema.GroupKind, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		delete(s.byKind, kind)
	case apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "context deadline exceeded"):
		if s.byKind == nil {
			s.byKind = map[schema.GroupKind]int{}
		}
		s.byKind[kind]++
	}
}
