package objects

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// modelRun is a run as the law sees it: which objects it applies and leaves, which of those another one has wanted since, or is being deleted.
type modelRun struct {
	under                               bool
	applies, releases, wanted, deleting map[int]bool
	// handed counts the hand-overs to its ManagedResource that are under way, by object.
	handed map[int]int
	// woken is true if it was busy and was not woken since.
	busy map[int]bool
}

// TestLawOfRuns holds the invariant of runs against a model, whatever runs begin and end in whatever order: a deletion is allowed if no other run applies
// the object, or has claimed it since; a hand-over if no run of the next owner leaves the object; a run is busy for exactly the deletions and hand-overs that are
// under way, and is woken by the first answer.
func TestLawOfRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const runs, things = 3, 2
		owner := func(i int) Owner { return Owner{Name: fmt.Sprint(i)} }
		key := func(i int) ID { return ID{Namespace: "n", Name: fmt.Sprint(i)} }
		l, model := New(), make([]modelRun, runs)
		l.OnReady(func(o Owner) {
			for i := range model {
				if owner(i) == o {
					clear(model[i].busy)
				}
			}
		})
		for i := range model {
			l.Track(owner(i), []Ref{{ID: key(0)}, {ID: key(1)}})
			model[i].handed, model[i].busy = map[int]int{}, map[int]bool{}
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
				next := modelRun{under: true, applies: map[int]bool{}, releases: map[int]bool{}, wanted: map[int]bool{}, deleting: map[int]bool{}, handed: s.handed, busy: s.busy}
				var applies, releases []ID
				busy := map[int]bool{}
				for object := range things {
					switch rapid.IntRange(0, 2).Draw(t, "claim") {
					case 1:
						next.applies[object], applies = true, append(applies, key(object))
					case 2:
						next.releases[object], releases = true, append(releases, key(object))
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
				if got := l.BeginRun(owner(run), applies, releases); got != (len(busy) > 0) {
					t.Fatalf("MRB-16: it is busy: %t, want %v", got, busy)
				}
				if len(busy) == 0 {
					*s = next
					return
				}
				for object := range busy {
					s.busy[object] = true
				}
			},
			"it ends": func(t *rapid.T) {
				run, s, _ := draw(t)
				if s.under && len(s.deleting) == 0 {
					l.EndRun(owner(run))
					*s = modelRun{handed: s.handed, busy: s.busy}
				}
			},
			"it deletes": func(t *rapid.T) {
				run, s, object := draw(t)
				if !s.under || s.deleting[object] {
					return
				}
				want := s.releases[object] && !s.wanted[object]
				if got := l.BeginDeletion(owner(run), key(object)); got != want {
					t.Fatalf("MRB-16: it may delete: %t, want %t", got, want)
				}
				if want {
					s.deleting[object] = true
				}
			},
			"its deletion is answered": func(t *rapid.T) {
				run, s, object := draw(t)
				if !s.deleting[object] {
					return
				}
				delete(s.deleting, object)
				l.EndDeletion(owner(run), key(object))
				for i := range model {
					if model[i].busy[object] {
						t.Fatalf("MRB-16: %d waits for an answer that came", i)
					}
				}
			},
			"somebody hands an object over": func(t *rapid.T) {
				heir, s, object := draw(t)
				if got, want := l.BeginHandOver(owner(heir), key(object)), !s.releases[object]; got != want {
					t.Fatalf("MRB-16: the hand-over is allowed: %t, want %t", got, want)
				} else if want {
					s.handed[object]++
				}
			},
			"the hand-over is answered": func(t *rapid.T) {
				heir, s, object := draw(t)
				if s.handed[object] == 0 {
					return
				}
				s.handed[object]--
				l.EndHandOver(owner(heir), key(object))
			},
			"": func(t *rapid.T) {
				for i := range model {
					for object := range things {
						if got := l.Releases(owner(i), key(object)); got != model[i].releases[object] {
							t.Fatalf("MRB-16: %d leaves %d: %t", i, object, got)
						}
						if got := l.Keeps(owner(i), "u", 1, key(object)); got == model[i].releases[object] {
							t.Fatalf("MRB-16: %d keeps %d: %t", i, object, got)
						}
					}
				}
			},
		})
	})
}

// The objects that a plan for a form of a ManagedResource had no more count for that form alone, until they are forgotten.
func TestDropped(t *testing.T) {
	l, owner, a, b := New(), Owner{Name: "o"}, ID{Name: "a"}, ID{Name: "b"}
	keeps := func(uid types.UID, generation int64) []bool {
		return []bool{l.Keeps(owner, uid, generation, a), l.Keeps(owner, uid, generation, b)}
	}
	l.Track(owner, []Ref{{ID: a}, {ID: b}})
	l.Drop(owner, "u", 1, []ID{a})
	for name, tc := range map[string]struct {
		uid        types.UID
		generation int64
		want       []bool
	}{
		"MRB-16/this form":            {"u", 1, []bool{false, true}},
		"MRB-16/the next generation":  {"u", 2, []bool{true, true}},
		"MRB-16/another one its name": {"v", 1, []bool{true, true}},
	} {
		if got := keeps(tc.uid, tc.generation); !slices.Equal(got, tc.want) {
			t.Errorf("%s keeps %v, want %v", name, got, tc.want)
		}
	}
	if !l.HasDropped(owner, "u", 1, []ID{a}) || l.HasDropped(owner, "u", 1, []ID{a, b}) || l.HasDropped(owner, "u", 2, []ID{a}) || !l.HasDropped(owner, "w", 7, nil) {
		t.Error("MRB-16: another plan is taken for the last one")
	}
	if l.ForgetDropped(owner); !slices.Equal(keeps("u", 1), []bool{true, true}) {
		t.Error("MRB-16: it is not forgotten")
	}
}

// An ignored ManagedResource claims its objects until it has some on record again.
func TestIgnoredClaim(t *testing.T) {
	l, ignored, other, key := New(), Owner{Name: "ignored"}, Owner{Name: "other"}, ID{Name: "a"}
	l.SetIgnored(ignored, []ID{key})
	if !l.OthersClaim(other, key) || l.OthersHave(other, key) || l.OthersClaim(other, ID{Name: "b"}) {
		t.Error("MR-3: an ignored ManagedResource keeps its objects")
	}
	l.Track(ignored, []Ref{{ID: ID{Name: "b"}}})
	if l.OthersClaim(other, key) {
		t.Error("MR-3: it is not ignored any more")
	}
}

// ReleaseAlso claims an object at another place than the one that the inventory names.
func TestLeaveToo(t *testing.T) {
	l, one, two, key := New(), Owner{Name: "one"}, Owner{Name: "two"}, ID{Name: "a"}
	l.Track(one, []Ref{{ID: ID{Name: "b"}}})
	l.BeginRun(one, nil, nil)
	l.BeginHandOver(one, key)
	if !l.ReleaseAlso(one, Ref{ID: key}) {
		t.Error("MRB-16: it is being handed over")
	}
	l.EndHandOver(one, key)
	if l.ReleaseAlso(one, Ref{ID: key}) || !l.Releases(one, key) || !l.BeginDeletion(one, key) {
		t.Error("MRB-16: it is not claimed")
	}
	l.EndDeletion(one, key)
	l.Track(two, []Ref{{ID: key}})
	if l.BeginRun(two, []ID{key}, nil); l.BeginDeletion(one, key) {
		t.Error("MRB-16: it is deleted though another run applies it")
	}
}
