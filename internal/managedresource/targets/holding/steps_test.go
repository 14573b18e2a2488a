package holding

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const self, other = "garden/many-0", "garden/many-1"

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
