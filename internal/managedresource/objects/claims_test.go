package objects

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// modelRun is a run as the property sees it: which objects it applies and leaves, which of those another one has wanted since, or is being deleted.
type modelRun struct {
	under                               bool
	end                                 func()
	applies, releases, wanted, deleting map[int]bool
	// handed counts the hand-overs to its ManagedResource that are under way, by object.
	handed map[int]int
	// tickets are those of its deletions, handOvers those of hand-overs to its ManagedResource.
	tickets   map[int]*Ticket
	handOvers map[int][]*Ticket
}

// TestPropertyOfRuns holds the invariant of runs against a model, whatever runs begin and end in whatever order: a deletion is allowed if no other run applies
// the object, or has claimed it since; a hand-over if no run of the next owner leaves the object; a run is busy for exactly the deletions and hand-overs that are
// under way.
func TestPropertyOfRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const runs, things = 3, 2
		owner := func(i int) Owner { return Owner{Name: fmt.Sprint(i)} }
		key := func(i int) ID { return ID{Namespace: "n", Name: fmt.Sprint(i)} }
		l, model := New(), make([]modelRun, runs)
		for i := range model {
			l.Track(owner(i), []Ref{{ID: key(0)}, {ID: key(1)}})
			model[i].handed, model[i].handOvers = map[int]int{}, map[int][]*Ticket{}
		}
		draw := func(t *rapid.T) (int, *modelRun, int) {
			run := rapid.IntRange(0, runs-1).Draw(t, "run")
			return run, &model[run], rapid.IntRange(0, things-1).Draw(t, "object")
		}
		t.Repeat(map[string]func(*rapid.T){
			"a run begins": func(t *rapid.T) {
				run, s, _ := draw(t)
				if s.under {
					return
				}
				next := modelRun{under: true, applies: map[int]bool{}, releases: map[int]bool{}, wanted: map[int]bool{}, deleting: map[int]bool{}, handed: s.handed, tickets: map[int]*Ticket{}, handOvers: s.handOvers}
				var applies []ID
				var releases []Ref
				busy := map[int]bool{}
				for object := range things {
					switch rapid.IntRange(0, 2).Draw(t, "claim") {
					case 1:
						next.applies[object], applies = true, append(applies, key(object))
					case 2:
						next.releases[object], releases = true, append(releases, Ref{ID: key(object)})
						if s.handed[object] > 0 {
							busy[object] = true
						}
					}
				}
				for i := range model {
					if i == run || !model[i].under {
						continue
					}
					for object := range next.applies {
						if model[i].releases[object] {
							model[i].wanted[object] = true
							if model[i].deleting[object] {
								busy[object] = true
							}
						}
					}
					for object := range next.releases {
						next.wanted[object] = next.wanted[object] || model[i].applies[object]
					}
				}
				end, got := l.Claim(owner(run), applies, releases)
				expect.Equal(t, got, len(busy) > 0, "MRB-16: it is busy: %t, want %v", got, busy)
				if len(busy) == 0 {
					next.end = end
					*s = next
					return
				}
			},
			"it ends": func(t *rapid.T) {
				_, s, _ := draw(t)
				if s.under && len(s.deleting) == 0 {
					s.end()
					*s = modelRun{handed: s.handed, handOvers: s.handOvers}
				}
			},
			"it deletes": func(t *rapid.T) {
				run, s, object := draw(t)
				if !s.under || s.deleting[object] {
					return
				}
				want := s.releases[object] && !s.wanted[object]
				ticket, got := l.Begin(ToDelete, owner(run), key(object))
				expect.Equal(t, got, want, "MRB-16: it may delete")
				if want {
					s.deleting[object], s.tickets[object] = true, ticket
				}
			},
			"its deletion is answered": func(t *rapid.T) {
				_, s, object := draw(t)
				if !s.deleting[object] {
					return
				}
				delete(s.deleting, object)
				s.tickets[object].End()
			},
			"somebody hands an object over": func(t *rapid.T) {
				heir, s, object := draw(t)
				if ticket, got := l.Begin(ToHandOver, owner(heir), key(object)); got == s.releases[object] {
					t.Fatalf("MRB-16: the hand-over is allowed: %t", got)
				} else if got {
					s.handed[object]++
					s.handOvers[object] = append(s.handOvers[object], ticket)
				}
			},
			"the hand-over is answered": func(t *rapid.T) {
				_, s, object := draw(t)
				if s.handed[object] == 0 {
					return
				}
				s.handed[object]--
				s.handOvers[object][0].End()
				s.handOvers[object] = s.handOvers[object][1:]
			},
			"": func(t *rapid.T) {
				for i := range model {
					for object := range things {
						expect.Equal(t, l.Releases(owner(i), key(object)), model[i].releases[object],
							"MRB-16: %d leaves %d", i, object)
					}
				}
			},
		})
	})
}

// A later Claim adds an object at another place than the one that the inventory names.
func TestClaim_Later(t *testing.T) {
	l, one, two, key := New(), Owner{Name: "one"}, Owner{Name: "two"}, ID{Name: "a"}
	l.Track(one, []Ref{{ID: ID{Name: "b"}}})
	l.Claim(one, nil, nil)
	handOver, _ := l.Begin(ToHandOver, one, key)
	expect.True(t, l.claim(one, nil, []Ref{{ID: key}}), "MRB-16: it is being handed over")
	handOver.End()
	expect.True(t, !l.claim(one, nil, []Ref{{ID: key}}) && l.Releases(one, key), "MRB-16: it is not claimed")
	deletion, mayDelete := l.Begin(ToDelete, one, key)
	must.True(t, mayDelete, "MRB-16: it is not claimed")
	deletion.End()
	l.Track(two, []Ref{{ID: key}})
	l.Claim(two, []ID{key}, nil)
	expect.False(t, expect.OK(l.Begin(ToDelete, one, key)), "MRB-16: it is deleted though another run applies it")
}

// A ticket ends once, whoever ends it, and is about the record that it was issued for: a record that was dropped and made anew is nobody's write.
func TestTicketsEndOnce(t *testing.T) {
	r := newRecorder(map[Owner][]Ref{mr1: {cm}})
	first, _ := r.Begin(ToApply, mr1, cm.ID)
	second, _ := r.Begin(ToApply, mr1, cm.ID)
	r.MarkOutOfSync(cm.ID)
	first.End()
	first.End()
	expect.Empty(t, r.drift, "MRB-34: notified while a write is under way")
	second.End()
	expect.Equal(t, len(r.drift), 1, "MRB-34: notified %d times after the last write", len(r.drift))
	late, _ := r.Begin(ToApply, mr1, cm.ID)
	r.Track(mr1, nil)
	r.Track(mr1, []Ref{cm})
	current, _ := r.Begin(ToApply, mr1, cm.ID)
	r.MarkOutOfSync(cm.ID)
	late.End()
	expect.Equal(t, len(r.drift), 1, "MRB-34: the ticket of a former record ended a write of the present one")
	current.End()
	expect.Equal(t, len(r.drift), 2, "MRB-34: notified %d times after the last write", len(r.drift))
}

// MRB-16: two entries may be about one object. While one of its two deletions is under way, no run may begin to apply it.
func TestTwoDeletionsOfOneObject(t *testing.T) {
	l, one, two, key := New(), Owner{Name: "one"}, Owner{Name: "two"}, ID{Name: "a"}
	l.Track(one, []Ref{{ID: key}})
	l.Track(two, []Ref{{ID: key}})
	l.Claim(one, nil, []Ref{{ID: key}})
	first, _ := l.Begin(ToDelete, one, key)
	second, _ := l.Begin(ToDelete, one, key)
	first.End()
	expect.True(t, l.claim(two, []ID{key}, nil), "MRB-16: a run applies an object that is being deleted")
	second.End()
	expect.False(t, l.claim(two, []ID{key}, nil), "MRB-16: a run waits for nothing")
}
