package holding

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	times = Times{Lease: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second}
	began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ours  = regexp.MustCompile("^garden/many-[0-9]+$").MatchString
)

// store has the Leases; version grows with each write, and goes back with a restore.
type store struct {
	version   uint64
	processes map[string]uint64
	leases    map[string]Lease
}

func (s *store) next() uint64 { s.version++; return s.version }

func (s *store) write(target string, lease Lease) {
	lease.Version = s.next()
	s.leases[target] = lease
}

func (s *store) clone() store {
	return store{s.version, maps.Clone(s.processes), maps.Clone(s.leases)}
}

// world has processes in one store, and the time of an observer.
type world struct {
	t       interface{ Fatalf(string, ...any) }
	now     time.Time
	targets []string
	store
	saved     []store
	processes map[string]*process
	started   int
	// touched is the time at which somebody last edited the store.
	touched time.Time
}

// process does one small step at a time: it may be paused or killed between any two.
type process struct {
	*Holdings
	w              *world
	name           string
	offset         time.Duration
	due            time.Time
	stage          int
	observation    Observation
	takes          []Take
	ending         map[string]bool
	paused, cutOff bool
}

func newWorld(t interface{ Fatalf(string, ...any) }, targets int) *world {
	w := &world{t: t, now: began, store: store{processes: map[string]uint64{}, leases: map[string]Lease{}}, processes: map[string]*process{}}
	for i := range targets {
		w.targets = append(w.targets, fmt.Sprintf("shoot-%d", i))
	}
	return w
}

func (w *world) join(offset time.Duration) *process {
	name := fmt.Sprintf("garden/many-%d", w.started)
	w.started++
	p := &process{Holdings: New(name, ours, times), w: w, name: name, offset: offset, ending: map[string]bool{}}
	w.processes[name] = p
	return p
}

func (w *world) names() []string { return slices.Sorted(maps.Keys(w.processes)) }

// clock is the process's own.
func (p *process) clock() time.Time { return p.w.now.Add(p.offset) }

// step does the next small step.
func (p *process) step() {
	now := p.clock()
	p.decide(now)
	switch {
	case p.stage == 0 && !now.Before(p.due):
		p.due = now.Add(times.Period)
		if p.cutOff {
			return
		}
		p.observation = Observation{Sent: now}
		p.w.store.processes[p.name] = p.w.next()
		p.stage = 1
	case p.stage == 1:
		seen := p.w.clone()
		p.observation.Processes, p.observation.Leases = seen.processes, seen.leases
		p.stage = 2
	case p.stage == 2:
		p.observation.Received = now
		_, lost := p.Observe(p.observation)
		p.end(lost)
		p.stage = 0
	case len(p.takes) > 0:
		p.take(now)
	default:
		for _, target := range slices.Sorted(maps.Keys(p.ending)) {
			p.release(target, p.Active(target, now))
			p.Drop(target)
			delete(p.ending, target)
			return
		}
	}
}

func (p *process) end(targets []string) {
	for _, target := range targets {
		p.ending[target] = true
		p.takes = slices.DeleteFunc(p.takes, func(t Take) bool { return t.Target == target })
	}
}

func (p *process) decide(now time.Time) {
	p.end(p.Fence(now))
	d := p.Decide(now, p.w.targets, true)
	p.takes = append(p.takes, d.Take...)
	p.end(d.Give)
	if p.cutOff {
		return
	}
	for _, target := range d.Renew {
		if lease := p.w.leases[target]; lease.Holder == p.name {
			lease.Renewed = now.UnixMicro()
			p.w.write(target, lease)
			p.Renewed(target, now, now.Add(Renewal))
		}
	}
	for _, target := range d.Free {
		p.release(target, false)
	}
	if !d.Wake.IsZero() && d.Wake.Before(p.due) {
		p.due = d.Wake
	}
}

func (p *process) take(now time.Time) {
	take := p.takes[0]
	p.takes = p.takes[1:]
	lease := p.w.leases[take.Target]
	if lease.Version, take.Seen.Version = 0, 0; p.cutOff || lease != take.Seen {
		p.Drop(take.Target)
		return
	}
	p.w.write(take.Target, Lease{Holder: p.name, Lasts: Lasts, Renewed: now.UnixMicro()})
	p.Taken(take, now, now, now.Add(Renewal))
}

func (p *process) release(target string, clean bool) {
	if p.cutOff || p.w.leases[target].Holder != p.name {
		return
	}
	lasts := times.Lease
	if clean {
		lasts = time.Second
	}
	p.w.write(target, Lease{Lasts: lasts, Renewed: p.clock().UnixMicro()})
}

// pass lets time pass; all processes that are not paused do steps all along.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(250 * time.Millisecond) {
		w.check()
		for _, name := range w.names() {
			for range 4 {
				if p := w.processes[name]; !p.paused {
					p.step()
				}
			}
			w.check()
		}
	}
}

// active are the processes that have an engine for a target.
func (w *world) active(target string) (all []string) {
	for _, name := range w.names() {
		if p := w.processes[name]; p.Active(target, p.clock()) {
			all = append(all, name)
		}
	}
	return all
}

func (w *world) check() {
	for _, target := range w.targets {
		if all := w.active(target); len(all) > 1 {
			w.t.Fatalf("TGT-18: at %s %s has engines in %v; its lease is %+v", w.now.Sub(began), target, all, w.leases[target])
		}
	}
}

// edits has somebody edit the store, unless that was done a moment ago. The processes with engines may not notice.
func (w *world) edits(t *rapid.T) {
	if w.now.Sub(w.touched) < times.Lease {
		t.Skip("somebody has just edited the store")
	}
	w.touched = w.now
	if rapid.Bool().Draw(t, "unnoticed") {
		for _, target := range w.targets {
			for _, name := range w.active(target) {
				w.processes[name].cutOff = true
			}
		}
	}
}

// actions are all that may happen to processes and Leases.
func (w *world) actions() map[string]func(*rapid.T) {
	one := func(t *rapid.T, what string, fits func(*process) bool) *process {
		names := slices.DeleteFunc(w.names(), func(name string) bool { return !fits(w.processes[name]) })
		if len(names) == 0 {
			t.Skip("there is no process")
		}
		return w.processes[rapid.SampledFrom(names).Draw(t, what)]
	}
	target := func(t *rapid.T) string { return rapid.SampledFrom(w.targets).Draw(t, "target") }
	each := func(*process) bool { return true }
	pass := func(t *rapid.T) {
		w.pass(time.Duration(rapid.IntRange(1, 60).Draw(t, "quarters of seconds")) * 250 * time.Millisecond)
	}
	return map[string]func(*rapid.T){
		"pass": pass, "pass on": pass, "pass further": pass,
		"step": func(t *rapid.T) { one(t, "steps", func(p *process) bool { return !p.paused }).step() },
		"join": func(t *rapid.T) {
			if len(w.processes) > 3 || w.started > 9 {
				t.Skip("there are enough")
			}
			w.join(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "offset")) * time.Minute)
		},
		"kill":   func(t *rapid.T) { delete(w.processes, one(t, "killed", each).name) },
		"pause":  func(t *rapid.T) { one(t, "paused", each).paused = true },
		"resume": func(t *rapid.T) { one(t, "resumed", func(p *process) bool { return p.paused }).paused = false },
		"cut":    func(t *rapid.T) { one(t, "cut off", each).cutOff = true },
		"join up": func(t *rapid.T) {
			one(t, "reaches the source", func(p *process) bool { return p.cutOff }).cutOff = false
		},
		"delete": func(t *rapid.T) {
			w.edits(t)
			delete(w.leases, target(t))
			w.pass(8 * time.Second)
		},
		"edit": func(t *rapid.T) {
			w.edits(t)
			name := target(t)
			lease, there := w.leases[name]
			if !there {
				t.Skip("there is no lease")
			}
			lease.Holder = rapid.SampledFrom([]string{"", "gardener-resource-manager-0", "garden/many-0", "garden/many-1", "garden/many-2"}).Draw(t, "holder")
			if lease.Lasts <= time.Second {
				lease.Lasts = Lasts
			}
			w.write(name, lease)
		},
		"delete a process's": func(t *rapid.T) { w.edits(t); delete(w.store.processes, one(t, "without a lease", each).name) },
		"save":               func(*rapid.T) { w.saved = append(w.saved, w.clone()) },
		"restore": func(t *rapid.T) {
			if len(w.saved) == 0 {
				t.Skip("nothing is saved")
			}
			w.edits(t)
			w.store = rapid.SampledFrom(w.saved).Draw(t, "saved")
			w.store = w.clone()
		},
	}
}

// TestLawOfEngines: whatever happens to processes and Leases, no two processes have an engine for one target at a time, and each target gets one.
func TestLawOfEngines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 4)
		w.join(0)
		t.Repeat(w.actions())
		for _, p := range w.processes {
			p.paused, p.cutOff = false, false
		}
		if len(w.processes) == 0 {
			w.join(0)
		}
		w.pass(Lasts + time.Minute)
		share := (len(w.targets) + len(w.processes) - 1) / len(w.processes)
		by := map[string]int{}
		for _, target := range w.targets {
			all := w.active(target)
			if len(all) != 1 {
				t.Fatalf("TGT-18: in the end %s has engines in %v; its lease is %+v", target, all, w.leases[target])
			}
			by[all[0]]++
		}
		for name, n := range by {
			if n > share {
				t.Fatalf("TGT-17: %s has %d targets of %d, and there are %d processes", name, n, len(w.targets), len(w.processes))
			}
		}
	})
}

// settled runs the world until each target has an engine.
func (w *world) complete(limit time.Duration) time.Duration {
	for from := w.now; ; w.pass(250 * time.Millisecond) {
		if !slices.ContainsFunc(w.targets, func(target string) bool { return len(w.active(target)) != 1 }) {
			return w.now.Sub(from)
		}
		if w.now.Sub(from) > limit {
			w.t.Fatalf("TGT-19: not every target has an engine after %s: %+v", limit, w.leases)
		}
	}
}

// TestLawOfHandOvers: the targets of a process that is killed run elsewhere within 20 s, and those of one that gives them back within 10 s.
func TestLawOfHandOvers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 6)
		for range rapid.IntRange(2, 4).Draw(t, "processes") {
			w.join(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "offset")) * time.Minute)
		}
		w.complete(time.Minute)
		w.pass(time.Duration(rapid.IntRange(40, 400).Draw(t, "quarters of seconds")) * 250 * time.Millisecond)
		w.complete(time.Minute)
		p := w.processes[rapid.SampledFrom(w.names()).Draw(t, "ends")]
		if !rapid.Bool().Draw(t, "in order") {
			delete(w.processes, p.name)
			w.complete(20 * time.Second)
			return
		}
		for _, target := range w.targets {
			p.release(target, p.Active(target, p.clock()))
		}
		delete(w.processes, p.name)
		delete(w.store.processes, p.name)
		w.complete(10 * time.Second)
	})
}

// TestIdle: 1,000 targets cost at most 20 writes a second.
func TestIdle(t *testing.T) {
	w := newWorld(t, 100)
	w.join(0)
	w.join(0)
	w.complete(2 * time.Minute)
	w.pass(time.Minute)
	version := w.version
	w.pass(10 * time.Minute)
	processes := 2 / times.Period.Seconds()
	renewals := 10 * (float64(w.version-version)/600 - processes)
	t.Logf("idle: %.1f writes a second for 1,000 targets, and %.1f for two processes", renewals, processes)
	if renewals > 20 {
		t.Errorf("TGT-16: %.1f writes a second of the Leases of 1,000 targets", renewals)
	}
}
