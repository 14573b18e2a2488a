package controller

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

const (
	// stuckRetry is how often an object is looked at that is terminating or can't be deleted: the watches tell of its end, and a look a
	// minute is for what they do not cover, for what its annotations ask for, and for whatever refused its deletion.
	stuckRetry = time.Minute
	// stuckTries is how often a deletion that failed, or finalizers whose time is up, are tried with each run before that: most faults
	// pass within seconds.
	stuckTries = 3
)

// stuck remembers which objects were terminating when they were read last, and which could not be deleted, so that waiting for them
// costs next to nothing.
//
// Invariant: it saves requests only, for a minute at most. That an object is gone is never concluded from it, and what it says is
// about the object with that UID. Objects that a ManagedResource keeps are taken out when a run begins; that it saves a request ends with what it was
// about: another specification, or somebody who asks for a look.
type stuck struct {
	mu      sync.Mutex
	byOwner map[objects.Owner]map[objects.Key]*stuckObject
}

type stuckObject struct {
	// uid is that of a terminating object, else "".
	uid types.UID
	// next is when it may be looked at again; tries counts the times that more than waiting was tried.
	next  time.Time
	tries int
	// err is why it could not be deleted or finalized, nil if it only takes time.
	err        error
	finalizers string
	// text is what its Events said.
	text *string
	// done is true if nothing remained to be done about it when it was read, and mark what was on record before.
	done bool
	mark objects.Mark
}

func (o *stuckObject) terminating() bool { return o != nil && o.uid != "" }

// tried sets when the object is tried again.
func (o *stuckObject) tried(now time.Time) {
	if o.tries++; o.tries < stuckTries {
		o.next = now
	} else {
		o.next = now.Add(stuckRetry)
	}
}

// note remembers an object that was read, and is terminating.
func (s *stuck) note(owner objects.Owner, key objects.Key, now time.Time, live *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &stuckObject{
		uid: live.GetUID(), next: now.Add(stuckRetry),
		finalizers: strings.Join(slices.Sorted(slices.Values(live.GetFinalizers())), ", "),
	}
	if before := s.byOwner[owner][key]; before != nil && (before.uid == o.uid || !before.terminating()) {
		o.tries = before.tries
	}
	if after, err := finalizeAfter(live); err == nil && after != 0 {
		due := live.GetDeletionTimestamp().Add(after)
		switch {
		case !due.After(now):
			o.tried(now)
		case due.Before(o.next):
			o.next = due
		}
	}
	s.setLocked(owner, key, o)
}

func (s *stuck) setLocked(owner objects.Owner, key objects.Key, o *stuckObject) {
	if s.byOwner == nil {
		s.byOwner = map[objects.Owner]map[objects.Key]*stuckObject{}
	}
	if s.byOwner[owner] == nil {
		s.byOwner[owner] = map[objects.Key]*stuckObject{}
	}
	s.byOwner[owner][key] = o
}

// failed remembers why an object could not be deleted, or finalized.
func (s *stuck) failed(owner objects.Owner, key objects.Key, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byOwner[owner][key]
	if o == nil {
		o = &stuckObject{}
		s.setLocked(owner, key, o)
	}
	o.err, o.text, o.done = err, nil, false
	o.tried(now)
}

// settled notes that nothing remained to be done about an object that was read: it is gone, or stays. While others hold up the run it is read once a
// minute, or when there is news of it; before anything is concluded from that, it is read once more.
func (s *stuck) settled(owner objects.Owner, key objects.Key, now time.Time, before objects.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setLocked(owner, key, &stuckObject{done: true, mark: before, next: now.Add(stuckRetry)})
}

// isSettled says whether nothing remained to be done about an object less than a minute ago, and nothing was told of it since.
func (s *stuck) isSettled(owner objects.Owner, key objects.Key, now time.Time, present objects.Mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byOwner[owner][key]
	return o != nil && o.done && now.Before(o.next) && o.mark == present
}

// renew has all objects of a ManagedResource looked at again that were put off.
func (s *stuck) renew(owner objects.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byOwner[owner] {
		o.next, o.tries = time.Time{}, 0
	}
}

// alive notes that the object was read, and is not terminating: what is known of one that was is about another.
func (s *stuck) alive(owner objects.Owner, key objects.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOwner[owner][key].terminating() {
		s.endLocked(owner, key)
	}
}

// holds says whether an object need not be looked at again yet, why it is not gone, and its UID if it was terminating.
func (s *stuck) holds(owner objects.Owner, key objects.Key, now time.Time) (held bool, uid types.UID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byOwner[owner][key]
	if o == nil || o.done || !now.Before(o.next) {
		return false, "", nil
	}
	return true, o.uid, o.err
}

// knows says whether an object was terminating when it was read last.
func (s *stuck) knows(owner objects.Owner, key objects.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byOwner[owner][key].terminating()
}

func (s *stuck) finalizers(owner objects.Owner, key objects.Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.byOwner[owner][key]; o != nil {
		return o.finalizers
	}
	return ""
}

// text returns what the Events of an object said, read once for each time that it was noted.
func (s *stuck) text(owner objects.Owner, key objects.Key, read func() string) string {
	s.mu.Lock()
	o := s.byOwner[owner][key]
	s.mu.Unlock()
	if o == nil {
		return read()
	}
	if o.text == nil { // One run at a time looks at the objects of a ManagedResource.
		text := read()
		o.text = &text
	}
	return *o.text
}

func (s *stuck) end(owner objects.Owner, key objects.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(owner, key)
}

func (s *stuck) endLocked(owner objects.Owner, key objects.Key) {
	delete(s.byOwner[owner], key)
	if len(s.byOwner[owner]) == 0 {
		delete(s.byOwner, owner)
	}
}

// keep takes out the objects of a ManagedResource that it is not to delete.
func (s *stuck) keep(owner objects.Owner, deleted []resourcesv1alpha1.ObjectReference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOwner[owner] == nil {
		return
	}
	keys := make(map[objects.Key]struct{}, len(deleted))
	for i := range deleted {
		keys[target.RefOf(&deleted[i]).Key] = struct{}{}
	}
	for key := range s.byOwner[owner] {
		if _, found := keys[key]; !found {
			s.endLocked(owner, key)
		}
	}
}

func (s *stuck) forget(owner objects.Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byOwner, owner)
}
