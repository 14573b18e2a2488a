package limit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestBudget(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	l := New(Options{PerSecond: 10, Burst: 20, Clients: 100, Clock: clock})
	spend := func(client string, n int) (allowed int) {
		for range n {
			if l.Allow(client) {
				allowed++
			}
		}
		return allowed
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		who   string
		n     int
		want  int
	}{
		{"the burst at once", 0, "a", 50, 20},
		{"nothing is left", 0, "a", 50, 0},
		{"another has all of its own", 0, "b", 50, 20},
		{"one comes back in a tenth of a second", 100 * time.Millisecond, "a", 50, 1},
		{"ten in a second", time.Second, "a", 50, 10},
		{"no more than the burst after an hour", time.Hour, "a", 50, 20},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if got := spend(step.who, step.n); got != step.want {
			t.Errorf("%s: got %d, want %d", step.name, got, step.want)
		}
	}
}

// alone is a client that nobody shares anything with: the usual bucket of tokens, in nanoseconds of time so that nothing is rounded.
type alone struct {
	tokens, full, one time.Duration
	at                time.Time
}

func (a *alone) allow(now time.Time) bool {
	a.tokens = min(a.full, a.tokens+now.Sub(a.at))
	a.at = now
	if a.tokens < a.one {
		return false
	}
	a.tokens -= a.one
	return true
}

// TestLaw is the invariant of Limiter against a bucket for each client, for clients that fit and for more of them than fit.
func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := clocktesting.NewFakePassiveClock(start)
		o := Options{PerSecond: rapid.IntRange(1, 50).Draw(t, "per second"), Burst: rapid.IntRange(1, 30).Draw(t, "burst"), Clients: rapid.IntRange(1, 8).Draw(t, "kept"), Clock: clock}
		clients := rapid.IntRange(1, 12).Draw(t, "clients")
		l := New(o)
		one := time.Second / time.Duration(o.PerSecond)
		model := map[string]*alone{}
		got, want := map[string]int{}, map[string]int{}
		for range rapid.IntRange(1, 400).Draw(t, "events") {
			clock.SetTime(clock.Now().Add(time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1, 1e6, 1e8, 3e9}).Draw(t, "pause"))))
			who := fmt.Sprint("client-", rapid.IntRange(0, clients-1).Draw(t, "who"))
			if model[who] == nil {
				model[who] = &alone{tokens: one * time.Duration(o.Burst), full: one * time.Duration(o.Burst), one: one, at: clock.Now()}
			}
			if l.Allow(who) {
				got[who]++
			}
			if model[who].allow(clock.Now()) {
				want[who]++
			}
			if got[who] < want[who] {
				t.Fatalf("%s was allowed %d times, alone it would have been %d", who, got[who], want[who])
			}
			if clients <= o.Clients && got[who] != want[who] {
				t.Fatalf("%s was allowed %d times, though alone it would have been %d", who, got[who], want[who])
			}
			if l.Clients() > o.Clients {
				t.Fatalf("%d clients are kept", l.Clients())
			}
		}
	})
}

// TestInventedClients: a flood of names costs bounded memory, and a client that asks meanwhile gets all of its budget.
func TestInventedClients(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	l := New(Options{PerSecond: 1, Burst: 5, Clients: 10, Clock: clock})
	allowed := 0
	for i := range 1000 {
		l.Allow(fmt.Sprint(i, strings.Repeat("x", 1<<12)))
		if i%100 == 0 && l.Allow("good") {
			allowed++
		}
	}
	if allowed < 5 {
		t.Errorf("the good client was allowed %d times", allowed)
	}
	if l.Clients() > 10 || len(l.order) > 10 {
		t.Errorf("%d clients are kept, %d in order", l.Clients(), len(l.order))
	}
	for name := range l.clients {
		if len(name) > longest {
			t.Errorf("a name of %d bytes is kept", len(name))
		}
	}
}

// TestForgetsTheWhole: among those that fit, a client with nothing left is not forgotten for one that asked once.
func TestForgetsTheWhole(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(start)
	l := New(Options{PerSecond: 10, Burst: 20, Clients: 3, Clock: clock})
	for range 20 {
		l.Allow("greedy")
	}
	for i := range 100 {
		l.Allow(fmt.Sprint("once-", i))
		if l.Allow("greedy") {
			t.Fatalf("after %d others the greedy client has a new budget", i)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	l := New(Options{PerSecond: 10, Burst: 20, Clients: 10_000, Clock: clocktesting.NewFakePassiveClock(start)})
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprint("gardener.cloud:system:seed:", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Allow(names[i%len(names)])
	}
}
