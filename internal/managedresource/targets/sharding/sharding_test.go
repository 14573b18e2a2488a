package sharding

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// TestShares: members own about as many targets each, and few targets move when one comes or goes.
func TestShares(t *testing.T) {
	targets := names("shoot--project--name", 1000)
	for n := 1; n <= 10; n++ {
		members := names("resource-manager-many", n)
		owned, moved := map[string]int{}, 0
		for _, target := range targets {
			owner := Owner(target, members)
			owned[owner]++
			if after := Owner(target, append(slices.Clone(members), "another")); after != owner {
				moved++
			}
		}
		for member, got := range owned {
			if share := len(targets) / n; got < share*3/4 || got > share*5/4 {
				t.Errorf("TGT-17: of %d members %s owns %d targets of %d", n, member, got, len(targets))
			}
		}
		if most := len(targets) / (n + 1) * 5 / 4; moved > most {
			t.Errorf("TGT-17: %d targets move when there are %d members in place of %d, want %d at most", moved, n+1, n, most)
		}
	}
	if got := Owner("a", nil); got != "" {
		t.Errorf("TGT-17: nobody owns, got %q", got)
	}
}

// TestLawOfMoves: a member that comes takes targets to itself only, and one that goes leaves its own only, in whatever order members are named.
func TestLawOfMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9-]{1,20}`)
		members := rapid.SliceOfNDistinct(name, 1, 8, rapid.ID).Draw(t, "members")
		target, another := name.Draw(t, "target"), "another."+name.Draw(t, "another")
		before := Owner(target, members)
		if !slices.Contains(members, before) {
			t.Fatalf("TGT-17: %s belongs to %q, of %v", target, before, members)
		}
		if got := Owner(target, rapid.Permutation(members).Draw(t, "order")); got != before {
			t.Fatalf("TGT-17: %s belongs to %s, and in another order to %s", target, before, got)
		}
		if after := Owner(target, append(members, another)); after != before && after != another {
			t.Fatalf("TGT-17: %s moves from %s to %s when %s comes", target, before, after, another)
		}
	})
}

// TestLostAnswer: a claim that was sent, and of which nobody knows whether it is published, restricts a process until it has published another one.
func TestLostAnswer(t *testing.T) {
	target := ""
	for _, name := range names("shoot", 1000) {
		if Owner(name, []string{"a", "d"}) == "a" && Owner(name, []string{"a", "b", "d"}) == "b" {
			target = name
			break
		}
	}
	s := New("a")
	publish := func(claims map[string][]string, want ...string) {
		t.Helper()
		got, _ := s.Observe(claims)
		if !slices.Equal(got, want) {
			t.Fatalf("TGT-18: publishes %v, want %v", got, want)
		}
		if want != nil {
			s.Attempt(got)
		}
	}
	owns := func(when string, want bool) {
		t.Helper()
		if got := s.Owns(target); got != want {
			t.Fatalf("TGT-18/%s: owns it: %v", when, got)
		}
	}
	publish(map[string][]string{"a": nil, "d": nil}, "a", "d")
	s.Published()
	publish(map[string][]string{"a": {"a", "d"}, "d": nil})
	owns("d has no claim", true)
	publish(map[string][]string{"a": {"a", "d"}, "b": nil, "d": nil}, "a", "b", "d") // The answer is lost, and so is b.
	owns("b comes", false)
	publish(map[string][]string{"a": {"a", "b", "d"}, "d": {"d"}}, "a", "d") // d begins the target, as the claim of a does not cover it.
	owns("b goes", false)
	s.Published()
	publish(map[string][]string{"a": {"a", "d"}, "d": {"d"}})
	owns("d looks after it", false)
	publish(map[string][]string{"a": {"a", "d"}, "d": {"a", "d"}})
	owns("d has let it go", true)
}

// world has what processes have published, and what they do.
type world struct {
	t         *rapid.T
	targets   []string
	published map[string][]string
	processes map[string]*instance
	// crashed are those whose claim is still there.
	crashed []string
	n       int
}

// instance is a process: it reads, observes what it read, ends what it does not keep, and publishes, in this order and as slowly as it likes.
type instance struct {
	share *Share
	// read is what it has read and not observed yet; publish is its next claim.
	read    map[string][]string
	publish []string
	// late is a claim whose answer was lost, and which may be published until another one is.
	late []string
	// runs has true for what it looks after, and false for what it is ending.
	runs map[string]bool
}

func (w *world) join() {
	w.n++
	name := fmt.Sprintf("process-%d", w.n)
	w.published[name] = nil
	w.processes[name] = &instance{share: New(name), runs: map[string]bool{}}
}

// step does the next step of a process, and says whether others see something of it. If the answer to a write is lost, the process knows nothing of the write.
func (w *world) step(name string, lost bool) (seen bool) {
	p := w.processes[name]
	switch {
	case p.read != nil:
		p.publish, _ = p.share.Observe(p.read)
		p.read = nil
		for target := range p.runs {
			if !p.share.Keeps(target) {
				p.runs[target] = false
			}
		}
	case p.publish != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(p.runs)), func(target string) bool { return !p.share.Keeps(target) }):
		p.share.Attempt(p.publish)
		if lost {
			p.late, p.publish = p.publish, nil
			return true
		}
		w.published[name] = p.publish
		p.share.Published()
		p.publish, p.late = nil, nil
		return true
	default:
		p.read = maps.Clone(w.published)
	}
	return false
}

// work begins a target where the process may, or ends one that is to end, and says whether it did.
func (w *world) work(name, target string) (did bool) {
	p := w.processes[name]
	running, found := p.runs[target]
	switch {
	case found && !running:
		delete(p.runs, target)
	case !found && p.share.Owns(target):
		p.runs[target] = true
	default:
		return false
	}
	return true
}

// check fails if two processes look after one target.
func (w *world) check() {
	for _, target := range w.targets {
		var by []string
		for name, p := range w.processes {
			if _, runs := p.runs[target]; runs {
				by = append(by, name)
			}
		}
		if len(by) > 1 {
			w.t.Fatalf("TGT-18: %s is looked after by %v, whose claims are %v", target, slices.Sorted(slices.Values(by)), w.published)
		}
	}
}

// settle has all processes go on until nothing happens any more: a process may observe what it read long ago first, and reads and observes again then.
func (w *world) settle() {
	for quiet := 0; quiet < 6; quiet++ {
		did := false
		for _, name := range slices.Sorted(maps.Keys(w.processes)) {
			did = w.step(name, false) || did
			for _, target := range w.targets {
				did = w.work(name, target) || did
				w.check()
			}
		}
		if did {
			quiet = -1
		}
	}
}

// TestLawOfOwners: for any sequence of joins, leaves, crashes and expiries, and any order of steps, no target has two owners at a time, and in the end each has one.
func TestLawOfOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, targets: names("shoot", 6), published: map[string][]string{}, processes: map[string]*instance{}}
		w.join()
		one := func(what string) string {
			return rapid.SampledFrom(slices.Sorted(maps.Keys(w.processes))).Draw(t, what)
		}
		needsOne := func() {
			if len(w.processes) == 0 {
				t.Skip("there is no process")
			}
		}
		step := func(t *rapid.T) {
			needsOne()
			w.step(one("process"), rapid.IntRange(0, 9).Draw(t, "lost") == 0)
		}
		work := func(t *rapid.T) {
			needsOne()
			w.work(one("process"), rapid.SampledFrom(w.targets).Draw(t, "target"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"step": step, "step on": step, "step further": step, "work": work, "work on": work, "work further": work,
			"join": func(t *rapid.T) {
				if len(w.processes) > 4 {
					t.Skip("there are enough")
				}
				w.join()
			},
			"leave": func(*rapid.T) {
				needsOne()
				name := one("leaves") // It has ended all that it looked after.
				delete(w.processes, name)
				delete(w.published, name)
			},
			"crash": func(*rapid.T) {
				needsOne()
				name := one("crashes")
				delete(w.processes, name)
				w.crashed = append(w.crashed, name)
			},
			"expire": func(t *rapid.T) {
				if len(w.crashed) == 0 {
					t.Skip("nobody has crashed")
				}
				delete(w.published, w.crashed[0])
				w.crashed = w.crashed[1:]
			},
			"a lost write": func(*rapid.T) {
				needsOne()
				name := one("written late")
				if p := w.processes[name]; p.late != nil {
					w.published[name], p.late = p.late, nil
				}
			},
			"settle": func(*rapid.T) { w.settle() },
			"":       func(*rapid.T) { w.check() },
		})
		for _, name := range w.crashed {
			delete(w.published, name)
		}
		if len(w.processes) == 0 {
			w.join()
		}
		w.settle()
		members := slices.Collect(maps.Keys(w.processes))
		for _, target := range w.targets {
			if owner := Owner(target, members); !w.processes[owner].runs[target] {
				t.Fatalf("TGT-18: %s has no owner in the end, want %s", target, owner)
			}
		}
		for name, p := range w.processes {
			if !p.share.Settled() {
				t.Fatalf("TGT-18: %s waits for somebody in the end", name)
			}
		}
	})
}
