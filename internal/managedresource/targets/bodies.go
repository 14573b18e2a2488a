package targets

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// bodies bounds how much of the answers of all targets is in memory at once.
//
// Invariants:
//   - All open bodies of a target together stay within the limit of the target, and the bodies of all targets within the limit of all.
//   - A body that would exceed the limit of its target fails. When a body would exceed the limit of all, the largest body of the target that has most
//     fails, which may be the same body: a target that has little never fails for a target that has much.
//   - No reader waits, so that a body that hangs holds up nothing.
type bodies struct {
	total int64

	mu     sync.Mutex
	used   int64
	shares map[*bodyShare]struct{}
	failed func()
}

// bodyShare is what one target has.
type bodyShare struct {
	of    *bodies
	limit int64
	used  int64
	open  map[*body]struct{}
}

// body is an answer that is being read.
type body struct {
	io.ReadCloser
	share *bodyShare
	used  int64
	// failure is why it is read no further; it counts no more then.
	failure error
	cancel  func()
}

// newBodies returns the bound for all targets; failed is called for each answer that exceeds one.
func newBodies(total int64, failed func()) *bodies {
	return &bodies{total: total, shares: map[*bodyShare]struct{}{}, failed: failed}
}

// errLeft is the error of reading an answer after the connection to its target has ended.
var errLeft = errors.New("the target is let go")

// share returns that of one target; leave ends it.
func (b *bodies) share(limit int64) *bodyShare {
	s := &bodyShare{of: b, limit: limit, open: map[*body]struct{}{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[s] = struct{}{}
	return s
}

func (s *bodyShare) leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for its := range s.open {
		its.failure = errLeft
		its.endLocked()
		go its.cancel()
	}
	delete(s.of.shares, s)
}

// read returns a body that counts; cancel ends its request.
func (s *bodyShare) read(inner io.ReadCloser, cancel func()) io.ReadCloser {
	b := &body{ReadCloser: inner, share: s, cancel: cancel}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.open[b] = struct{}{}
	return b
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if failure := b.grow(int64(n)); failure != nil {
		return 0, failure
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.share.of.mu.Lock()
	b.endLocked()
	delete(b.share.open, b)
	b.share.of.mu.Unlock()
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

// grow counts bytes that were read, and returns why no more are.
func (b *body) grow(n int64) error {
	all := b.share.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if b.failure != nil {
		return b.failure
	}
	b.used += n
	b.share.used += n
	all.used += n
	if b.share.used > b.share.limit {
		b.failLocked(fmt.Errorf("the answers of the target are larger than %d bytes at once", b.share.limit))
	}
	for all.used > all.total {
		all.largestLocked().failLocked(fmt.Errorf("the answers of all targets are larger than %d bytes at once, and this target has most", all.total))
	}
	return b.failure
}

// largestLocked returns the largest body of the target that has most.
func (b *bodies) largestLocked() *body {
	var most *bodyShare
	for s := range b.shares {
		if most == nil || s.used > most.used {
			most = s
		}
	}
	var largest *body
	for its := range most.open {
		if largest == nil || its.used > largest.used {
			largest = its
		}
	}
	return largest
}

// failLocked ends a body: its reader frees the bytes within moments.
func (b *body) failLocked(failure error) {
	b.failure = failure
	b.endLocked()
	b.share.of.failed()
	go b.cancel() // It may wait for whoever reads.
}

func (b *body) endLocked() {
	b.share.used -= b.used
	b.share.of.used -= b.used
	b.used = 0
}
