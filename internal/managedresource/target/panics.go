package target

import "k8s.io/client-go/tools/cache"

// Panicked is called with the panic of a goroutine or a timer of this package, where one process serves many targets:
// that target's share of the process ends then. Without it a panic ends the process, as everywhere else.
type Panicked func(cause any)

// caught is deferred by each goroutine.
func (p Panicked) caught() {
	if p == nil {
		return
	}
	if cause := recover(); cause != nil {
		p(cause)
	}
}

// guarding returns a function whose panic is caught.
func (p Panicked) guarding(do func()) func() {
	if p == nil {
		return do
	}
	return func() {
		defer p.caught()
		do()
	}
}

// store returns a store whose panics are caught: reflectors log what theirs panic with, and begin anew.
func (p Panicked) store(inner cache.ReflectorStore) cache.ReflectorStore {
	if p == nil {
		return inner
	}
	return &caughtStore{inner, p}
}

// caughtStore is a store whose panics are caught.
type caughtStore struct {
	cache.ReflectorStore
	panicked Panicked
}

// Add implements cache.ReflectorStore.
func (s *caughtStore) Add(object any) error {
	defer s.panicked.caught()
	return s.ReflectorStore.Add(object)
}

// Update implements cache.ReflectorStore.
func (s *caughtStore) Update(object any) error {
	defer s.panicked.caught()
	return s.ReflectorStore.Update(object)
}

// Delete implements cache.ReflectorStore.
func (s *caughtStore) Delete(object any) error {
	defer s.panicked.caught()
	return s.ReflectorStore.Delete(object)
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater.
func (s *caughtStore) UpdateResourceVersion(resourceVersion string) {
	if inner, is := s.ReflectorStore.(cache.ResourceVersionUpdater); is {
		inner.UpdateResourceVersion(resourceVersion)
	}
}
