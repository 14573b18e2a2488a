package answers

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestLawOfBodies: whatever targets answer, all open answers are within the limits; and one that is cut at the limit of all is of the target that has most.
func TestLawOfBodies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		total, limit := int64(rapid.IntRange(10, 100).Draw(rt, "total")), int64(rapid.IntRange(5, 100).Draw(rt, "limit"))
		var cut atomic.Int32
		all := NewBudget(total, func() { cut.Add(1) })
		var shares []*Share
		for range rapid.IntRange(1, 4).Draw(rt, "targets") {
			shares = append(shares, all.Share(limit))
		}
		type reading struct {
			io.ReadCloser
			share *Share
		}
		var open []reading
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				share := rapid.SampledFrom(shares).Draw(rt, "target")
				open = append(open, reading{share.read(io.NopCloser(endless{}), func() {}), share})
			case 1, 2:
				if len(open) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(open)-1).Draw(rt, "body")
				its := open[at]
				before := map[*Share]int64{}
				for _, share := range shares {
					before[share] = share.used
				}
				n := int64(rapid.IntRange(1, 40).Draw(rt, "bytes"))
				before[its.share] += n
				alive := map[*body]bool{}
				for _, other := range open {
					alive[other.ReadCloser.(*body)] = other.ReadCloser.(*body).failure == nil
				}
				_, _ = its.Read(make([]byte, n))
				for _, other := range open {
					b := other.ReadCloser.(*body)
					if !alive[b] || b.failure == nil || before[b.share] > limit {
						continue
					}
					for _, share := range shares {
						if share != b.share && before[share] > before[b.share] {
							rt.Fatalf("TGT-13: an answer of a target with %d bytes was cut, another one has %d", before[b.share], before[share])
						}
					}
				}
			case 3:
				if len(open) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(open)-1).Draw(rt, "body")
				_ = open[at].Close()
				open = append(open[:at:at], open[at+1:]...)
			}
			var sum int64
			for _, share := range shares {
				if share.used > limit || share.used < 0 {
					rt.Fatalf("TGT-13: a target has %d bytes of %d", share.used, limit)
				}
				sum += share.used
			}
			if all.used != sum || sum > total {
				rt.Fatalf("TGT-13: all have %d bytes of %d, and %d are counted", sum, total, all.used)
			}
		}
		for _, its := range open {
			_ = its.Close()
		}
		if all.used != 0 {
			rt.Fatalf("%d bytes are left", all.used)
		}
	})
}

// TestLeaving: the answers of a target that is let go are read no further, and count no more.
func TestLeaving(t *testing.T) {
	all := NewBudget(1000, func() {})
	share := all.Share(1000)
	its := share.read(io.NopCloser(endless{}), func() {})
	if _, err := its.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	share.Leave()
	if _, err := its.Read(make([]byte, 10)); !errors.Is(err, errLeft) || all.used != 0 || len(all.shares) != 0 {
		t.Errorf("got %v, %d bytes", err, all.used)
	}
	if err := its.Close(); err != nil || all.used != 0 {
		t.Errorf("got %v, %d bytes", err, all.used)
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestCharges: what answers take decoded counts for as long as decoding may take, and one that would exceed a limit is refused.
func TestCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		all := NewBudget(100<<20, func() { failed++ })
		one, other := all.Share(64<<20), all.Share(64<<20)
		if err := one.charge(60 << 20); err != nil {
			t.Fatal(err)
		}
		if err := one.charge(10 << 20); err == nil || failed != 1 {
			t.Errorf("LIM-2: a target exceeds its share: %v", err)
		}
		if err := other.charge(50 << 20); err == nil || failed != 2 {
			t.Errorf("LIM-2: all targets exceed their limit: %v", err)
		}
		time.Sleep(3 * time.Second)
		if err := other.charge(50 << 20); err != nil {
			t.Errorf("LIM-2: what was decoded still counts: %v", err)
		}
		time.Sleep(3 * time.Second)
		if all.used != 0 || one.used != 0 || other.used != 0 {
			t.Errorf("LIM-2: %d bytes are left", all.used)
		}
		one.Leave()
		if err := one.charge(1); err == nil {
			t.Error("LIM-2: a target that is let go is charged")
		}
	})
}

// TGT-13: bodies that hold nothing, as those of idle watches, free nothing: they never fail for what their targets have decoded, and the
// search for bodies that do ends.
func TestIdleBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 0
		budget := NewBudget(256<<20, func() { failures++ })
		var idle []*body
		for range 4 {
			s := budget.Share(64 << 20)
			idle = append(idle, s.read(io.NopCloser(strings.NewReader("")), func() {}))
			if err := s.charge(60 << 20); err != nil {
				t.Fatal(err)
			}
		}
		fifth := budget.Share(64 << 20)
		if fifth.charge(20<<20) == nil || failures != 1 {
			t.Errorf("decoded: %d failures", failures)
		}
		reading := fifth.read(io.NopCloser(bytes.NewReader(make([]byte, 20<<20))), func() {})
		if _, err := io.Copy(io.Discard, reading); err == nil || failures != 2 {
			t.Errorf("read: %v, %d failures", err, failures)
		}
		for i, b := range idle {
			if b.failure != nil {
				t.Errorf("the watch of target %d fails: %v", i, b.failure)
			}
		}
		time.Sleep(time.Minute)
		if err := fifth.charge(20 << 20); err != nil {
			t.Errorf("once the others are decoded: %v", err)
		}
	})
}
