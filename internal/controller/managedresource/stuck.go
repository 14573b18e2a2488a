package managedresource

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

// stuckRetry is how often an object that is terminating is read: the watches tell of its end, and a read a minute is for what
// they do not cover and for what its annotations ask for.
const stuckRetry = time.Minute

// stuck remembers which objects were terminating when they were read last, so that waiting for them costs next to nothing.
//
// Invariant: it saves requests only. That an object is gone is never concluded from it.
type stuck struct {
	mu      sync.Mutex
	byOwner map[ledger.Owner]map[ledger.Key]*terminating
}

type terminating struct {
	// next is when it may be read again.
	next       time.Time
	finalizers string
	// text is what its Events said.
	text *string
}

// note remembers an object that was read, and is terminating.
func (s *stuck) note(owner ledger.Owner, key ledger.Key, now time.Time, live *unstructured.Unstructured) {
	finalizers := slices.Sorted(slices.Values(live.GetFinalizers()))
	next := now.Add(stuckRetry)
	if after, err := finalizeAfter(live); err == nil && after > 0 {
		if due := live.GetDeletionTimestamp().Add(after); due.Before(next) {
			next = due
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOwner == nil {
		s.byOwner = map[ledger.Owner]map[ledger.Key]*terminating{}
	}
	if s.byOwner[owner] == nil {
		s.byOwner[owner] = map[ledger.Key]*terminating{}
	}
	s.byOwner[owner][key] = &terminating{next: next, finalizers: strings.Join(finalizers, ", ")}
}

// holds says whether an object was terminating, and need not be read again yet.
func (s *stuck) holds(owner ledger.Owner, key ledger.Key, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.byOwner[owner][key]
	return t != nil && now.Before(t.next)
}

// knows says whether an object was terminating when it was read last.
func (s *stuck) knows(owner ledger.Owner, key ledger.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byOwner[owner][key] != nil
}

func (s *stuck) finalizers(owner ledger.Owner, key ledger.Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byOwner[owner][key]; t != nil {
		return t.finalizers
	}
	return ""
}

// text returns what the Events of an object said, read once for each time that it was noted.
func (s *stuck) text(owner ledger.Owner, key ledger.Key, read func() string) string {
	s.mu.Lock()
	t := s.byOwner[owner][key]
	s.mu.Unlock()
	if t == nil {
		return read()
	}
	if t.text == nil { // One run at a time looks at the objects of a ManagedResource.
		text := read()
		t.text = &text
	}
	return *t.text
}

func (s *stuck) end(owner ledger.Owner, key ledger.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byOwner[owner], key)
	if len(s.byOwner[owner]) == 0 {
		delete(s.byOwner, owner)
	}
}

func (s *stuck) forget(owner ledger.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byOwner, owner)
}
