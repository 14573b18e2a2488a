package controller

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tooManyTimeouts is after how many requests of a run that took too long, with none in between that succeeded, the
// other objects of their kind are not tried: a webhook that hangs costs each of them half a minute.
const tooManyTimeouts = 3

// errNotTried is why an object is not tried.
var errNotTried = errors.New("not tried, as requests for other objects of its kind took too long")

// slow counts, in one run, the requests for objects of a kind that took too long.
type breaker struct {
	mu     sync.Mutex
	byKind map[metav1.GroupKind]int
}

func (s *breaker) is(kind metav1.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKind[kind] >= tooManyTimeouts
}

// answered takes how a request ended.
func (s *breaker) answered(kind metav1.GroupKind, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		delete(s.byKind, kind)
	case apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "context deadline exceeded"):
		if s.byKind == nil {
			s.byKind = map[metav1.GroupKind]int{}
		}
		s.byKind[kind]++
	}
}
