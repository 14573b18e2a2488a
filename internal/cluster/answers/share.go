package answers

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Budget bounds the memory of all targets' answers, as text and decoded.
//
// Invariants:
//   - All open bodies of a target together stay within the limit of the target, and the bodies of all targets within the limit of all.
//   - A body that would exceed the limit of its target fails. When a body would exceed the limit of all, the largest body of the target that has most
//     fails, which may be the same body: a target that has little never fails for a target that has much.
//   - No reader waits, so that a body that hangs holds up nothing.
//   - What an answer takes once it is decoded counts from the check of its text on, for as long as decoding may take.
type Budget struct {
	total int64

	mu     sync.Mutex
	used   int64
	shares map[*Share]struct{}
	failed func()
}

// Share is the part of one target.
type Share struct {
	of    *Budget
	limit int64
	used  int64
	open  map[*body]struct{}
}

// body is an answer that is being read.
type body struct {
	io.ReadCloser
	share *Share
	used  int64
	// failure is the reason why it is read no further; it counts no more then.
	failure error
	cancel  func()
}

// NewBudget returns the bound for all targets; failed is called for each answer that exceeds one.
func NewBudget(total int64, failed func()) *Budget {
	return &Budget{total: total, shares: map[*Share]struct{}{}, failed: failed}
}

// errLeft is the error of reading an answer after the connection to its target has ended.
var errLeft = errors.New("the target is let go")

// Share returns the share of one target; Leave ends it.
func (b *Budget) Share(limit int64) *Share {
	s := &Share{of: b, limit: limit, open: map[*body]struct{}{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shares[s] = struct{}{}
	return s
}

// Leave ends the share: its answers are read no further.
func (s *Share) Leave() {
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
func (s *Share) read(inner io.ReadCloser, cancel func()) *body {
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
		largest := all.largestLocked()
		if largest == nil {
			break // All that is left is decoded already.
		}
		largest.failLocked(all.exceeded())
	}
	return b.failure
}

// decodedPerSecond is the minimum speed of decoding, in bytes of the decoded form.
const decodedPerSecond = 32 << 20

// charge counts what an answer takes once it is decoded, or returns why it must not be.
func (s *Share) charge(n int64) error {
	if n == 0 {
		return nil
	}
	all := s.of
	all.mu.Lock()
	defer all.mu.Unlock()
	if _, there := all.shares[s]; !there {
		return errLeft
	}
	if s.used+n > s.limit {
		all.failed()
		return fmt.Errorf("the answers of the target take more than %d bytes at once", s.limit)
	}
	s.used, all.used = s.used+n, all.used+n
	for all.used > all.total {
		largest := all.largestLocked()
		if largest == nil || largest.share == s {
			s.used, all.used = s.used-n, all.used-n
			all.failed()
			return fmt.Errorf("the answers of all targets take more than %d bytes at once, and this target has most", all.total)
		}
		largest.failLocked(all.exceeded())
	}
	time.AfterFunc(time.Duration(n)*time.Second/decodedPerSecond, func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		s.used, all.used = s.used-n, all.used-n
	})
	return nil
}

// done counts bytes no more that were handed on.
func (b *body) done(n int64) {
	b.share.of.mu.Lock()
	defer b.share.of.mu.Unlock()
	n = min(n, b.used)
	b.used, b.share.used, b.share.of.used = b.used-n, b.share.used-n, b.share.of.used-n
}

func (b *Budget) exceeded() error {
	return fmt.Errorf("the answers of all targets are larger than %d bytes at once, and this target has most", b.total)
}

// largestLocked returns the largest body of the target that has most, of those with bodies that hold something; nil if
// no body does: the idle body of a watch frees nothing, whatever its target has decoded.
func (b *Budget) largestLocked() (largest *body) {
	for s := range b.shares {
		for its := range s.open {
			switch {
			case its.used == 0:
			case largest == nil, s.used > largest.share.used, s == largest.share && its.used > largest.used:
				largest = its
			}
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
