package holding

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const self, other = "garden/many-0", "garden/many-1"

// settling is the time for which a Lease that was taken must stay so before its engine starts.
var settling = 2 * times.Period

// alone is one process, whose steps a test takes itself.
type alone struct {
	*Holdings
	now       time.Time
	processes map[string]uint64
	leases    map[string]Lease
}

// holds returns a process with engines for targets.
func holds(t *testing.T, targets ...string) *alone {
	t.Helper()
	a := &alone{Holdings: New(self, ours, times), now: began, processes: map[string]uint64{self: 1}, leases: map[string]Lease{}}
	a.list()
	for range 10 { // The Leases must have been absent for the duration of the Lease of a process.
		a.list()
	}
	for _, take := range a.Decide(a.now, targets, false).Take {
		a.leases[take.Target] = Lease{Holder: self, Version: 1, Lasts: Lasts}
		a.Taken(take, a.now, a.now, a.now.Add(Renewal))
	}
	var settled []string
	for range 10 {
		now, lost := a.list()
		settled = append(settled, now...)
		if len(lost) > 0 {
			t.Fatalf("%v are lost", lost)
		}
	}
	slices.Sort(settled)
	if diff := cmp.Diff(targets, settled); diff != "" {
		t.Fatalf("TGT-18: the list after which an engine starts names its target once (-want +got):\n%s", diff)
	}
	return a
}

// list observes everything after a period.
func (a *alone) list() (settled, lost []string) {
	a.now = a.now.Add(times.Period)
	a.processes[self]++
	return a.Observe(Observation{Sent: a.now, Received: a.now, Processes: maps.Clone(a.processes), Leases: maps.Clone(a.leases)})
}

func expect(t *testing.T, rule string, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("%s: got %v, want %v", rule, got, want)
	}
}

// TestLost: an engine ends once, for each reason for which a Lease is lost (TGT-18).
func TestLost(t *testing.T) {
	ends := func(name string, a *alone, lost []string) {
		t.Helper()
		expect(t, "TGT-18/"+name, []string{"a"}, lost)
		if a.Active("a", a.now) {
			t.Errorf("TGT-18/%s: the engine may go on", name)
		}
		_, again := a.list()
		expect(t, "TGT-18/"+name+", once more", nil, append(again, a.Fence(a.now)...))
	}
	a := holds(t, "a")
	a.leases["a"] = Lease{Holder: "foreign", Version: 2, Lasts: Lasts}
	_, lost := a.list()
	ends("another holder", a, lost)

	a = holds(t, "a")
	a.now = a.now.Add(times.Deadline)
	ends("no list in time", a, a.Fence(a.now))

	a = holds(t, "a")
	a.now = a.now.Add(times.Deadline)
	_, lost = a.list()
	ends("a list that comes late", a, lost)

	a = holds(t, "a")
	for range int(2*Renewal/times.Period) - 15 {
		if _, lost := a.list(); len(lost) > 0 {
			t.Fatalf("TGT-18: %v are lost at %s", lost, a.now.Sub(began))
		}
	}
	for lost = nil; len(lost) == 0 && a.now.Sub(began) < Lasts; {
		_, lost = a.list()
	}
	ends("no renewal", a, lost)
}

// TestShares: a process gives what is above its share once, from the end of the list, and keeps the rest (TGT-17).
func TestShares(t *testing.T) {
	a := holds(t, "a", "b", "c", "d", "e")
	a.processes[other] = 1
	a.list()
	d := a.Decide(a.now, []string{"a", "b", "c", "d", "e"}, true)
	expect(t, "TGT-17/two processes", []string{"e", "d"}, d.Give)
	if d.Live != 2 {
		t.Errorf("TGT-17: %d processes", d.Live)
	}
	expect(t, "TGT-17/once", nil, a.Decide(a.now, []string{"a", "b", "c", "d", "e"}, true).Give)
	expect(t, "TGT-17/without shares", nil, holds(t, "a", "b").Decide(a.now, []string{"a", "b"}, false).Give)
}

// TestDead: the Lease of a process that was silent for the duration of a target's Lease may be deleted, in the version that was seen (TGT-16).
func TestDead(t *testing.T) {
	a := holds(t)
	a.processes[other] = 7
	for a.list(); a.now.Sub(began) < Lasts; a.list() {
		if d := a.Decide(a.now, nil, true); len(d.Dead) > 0 {
			t.Fatalf("TGT-16: %v are dead after %s", d.Dead, a.now.Sub(began))
		}
	}
	for range 30 {
		a.list()
	}
	if diff := cmp.Diff(map[string]uint64{other: 7}, a.Decide(a.now, nil, true).Dead); diff != "" {
		t.Errorf("TGT-16: (-want +got)\n%s", diff)
	}
}

// TestSilentHolder: the deadline of a silent process counts from the last sign of it, which may be the Lease of a target (TGT-19).
func TestSilentHolder(t *testing.T) {
	a := holds(t)
	a.processes[other] = 7
	for range 10 {
		a.list()
	}
	a.leases["a"] = Lease{Holder: other, Version: 2, Lasts: Lasts}
	a.list()
	taken := a.now
	for a.now.Before(taken.Add(times.Deadline)) {
		if take := a.Decide(a.now, []string{"a"}, true).Take; len(take) > 0 {
			t.Fatalf("TGT-19: the Lease is taken %s after its holder wrote it", a.now.Sub(taken))
		}
		a.list()
	}
	if take := a.Decide(a.now, []string{"a"}, true).Take; len(take) != 1 {
		t.Errorf("TGT-19: the Lease of a silent process is not taken after the deadline")
	}
}

// TestWake: the process observes again when an engine may start, and when the holder of a Lease reaches its deadline (TGT-19).
func TestWake(t *testing.T) {
	a := holds(t)
	take := a.Decide(a.now, []string{"a"}, true).Take[0]
	a.Taken(take, a.now, a.now, a.now.Add(Renewal))
	at := func(name string, want time.Time, targets ...string) {
		t.Helper()
		if got := a.Decide(a.now, targets, true).Wake; !got.Equal(want) {
			t.Errorf("TGT-19/%s: wakes after %s, want %s", name, got.Sub(a.now), want.Sub(a.now))
		}
	}
	at("a Lease that was just taken", a.now.Add(settling), "a")
	a = holds(t, "a")
	at("nothing to wait for", time.Time{}, "a")
	a.processes[other], a.processes["garden/many-2"] = 7, 7
	a.leases["b"], a.leases["c"] = Lease{Holder: other, Version: 2, Lasts: Lasts}, Lease{Holder: "garden/many-2", Version: 3, Lasts: Lasts}
	a.list()
	seen := a.now
	a.processes["garden/many-2"]++
	a.list()
	at("the first of two holders", seen.Add(times.Deadline), "b", "a", "c")
}

// TestDecisions: what a process does with a Lease, by its content and the one before it (TGT-16, TGT-18).
func TestDecisions(t *testing.T) {
	a := holds(t, "a")
	a.leases["b"], a.leases["c"] = Lease{Holder: "foreign", Version: 2, Lasts: Lasts}, Lease{Holder: self, Version: 3, Lasts: Lasts}
	a.list()
	d := a.Decide(a.now, []string{"a", "b"}, true)
	if diff := cmp.Diff(map[string]string{"b": "foreign"}, d.Foreign); diff != "" {
		t.Errorf("TGT-18: holders of another kind (-want +got)\n%s", diff)
	}
	expect(t, "TGT-16/a Lease with the own name that is not held", []string{"c"}, d.Free)
	expect(t, "TGT-16/a renewal that is not due", nil, d.Renew)
	due := a.now.Add(Renewal)
	expect(t, "TGT-16/a renewal", []string{"a"}, a.Decide(due, nil, true).Renew)
	expect(t, "TGT-16/a renewal, once more", nil, a.Decide(due, nil, true).Renew)

	for name, c := range map[string]struct {
		is    Lease
		after time.Duration
	}{
		"released in order":      {Lease{Version: 2, Lasts: time.Second}, 0},
		"without a holder":       {Lease{Version: 2, Lasts: times.Lease}, times.Lease},
		"with the own name":      {Lease{Holder: self, Version: 2, Lasts: Lasts}, times.Lease},
		"of another kind":        {Lease{Holder: "foreign", Version: 2, Lasts: Lasts}, Lasts},
		"short, of another kind": {Lease{Holder: "foreign", Version: 2, Lasts: time.Second}, times.Lease},
	} {
		a := holds(t)
		a.leases["a"] = Lease{Holder: "before", Version: 1, Lasts: Lasts}
		a.list()
		a.leases["a"] = c.is
		a.list()
		if _, start := a.free("a"); !start.Equal(a.now.Add(c.after)) {
			t.Errorf("TGT-18/%s: an engine starts after %s, want %s", name, start.Sub(a.now), c.after)
		}
	}
}

// TestBounds: each time is exact (TGT-16, TGT-18).
func TestBounds(t *testing.T) {
	a := holds(t, "a")
	a.sent = a.now.Add(2 * Renewal)
	a.held["a"].renewed = a.now
	expect(t, "TGT-18/two renewals later", nil, a.Fence(a.now.Add(2*Renewal)))
	expect(t, "TGT-18/and a moment", []string{"a"}, a.Fence(a.now.Add(2*Renewal+1)))

	a = holds(t)
	a.processes[other] = 7
	a.list()
	live := func(after time.Duration) (int, int) {
		a.sent = a.now.Add(after)
		d := a.Decide(a.now, nil, true)
		return d.Live, len(d.Dead)
	}
	for after, want := range map[time.Duration][2]int{times.Deadline - 1: {2, 0}, times.Deadline: {1, 0}, Lasts: {1, 0}, Lasts + 1: {1, 1}} {
		if live, dead := live(after); live != want[0] || dead != want[1] {
			t.Errorf("TGT-16/silent for %s: %d processes, %d of them dead, want %v", after, live, dead, want)
		}
	}

	a = holds(t)
	since := a.since
	a.now = a.now.Add(settling - times.Period)
	if a.list(); !a.since.Equal(since) {
		t.Error("TGT-18: a gap that is as long as it may be makes the process forget")
	}
	a.now = a.now.Add(settling - times.Period + 1)
	if a.list(); !a.since.Equal(a.now) {
		t.Error("TGT-18: a gap does not make the process forget")
	}

	for delay, want := range map[time.Duration]time.Duration{settling: settling, settling + 1: times.Lease} {
		a = holds(t)
		take := a.Decide(a.now, []string{"a"}, true).Take
		if len(take) != 1 {
			t.Fatalf("TGT-18: %v are taken", take)
		}
		answered := a.now.Add(delay)
		a.Taken(take[0], a.now, answered, answered.Add(Renewal))
		if start := a.held["a"].start; !start.Equal(answered.Add(want)) {
			t.Errorf("TGT-18: a Lease that was taken %s after the list has an engine after %s, want %s", delay, start.Sub(answered), want)
		}
	}
}
