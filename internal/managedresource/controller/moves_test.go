package controller

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// TestLawMoves holds the invariant of moves against a model, whatever runs begin and end in whatever order: a deletion is allowed if
// nobody else wants the object, or has wanted it since it was entered, a hand-over if the heir does not lose it, and whoever comes waits for
// exactly the deletions, or hand-overs to it, that are under way.
func TestLawMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const runs, things = 3, 2
		refs := make([]resourcesv1alpha1.ObjectReference, things)
		for i := range refs {
			refs[i].APIVersion, refs[i].Kind, refs[i].Name = "v1", "ConfigMap", fmt.Sprint(i)
		}
		key := func(i int) plan.Key { return plan.KeyOfReference(&refs[i].ObjectReference) }
		owner := func(i int) objects.Owner { return objects.Owner{Name: fmt.Sprint(i)} }
		// What each run has entered; wanted are the objects that another one wants since then.
		type state struct {
			endLoss, endGain func()
			// lost is how many objects it loses.
			lost             int
			gains            map[int]bool
			wanted, deleting map[int]bool
			answered         map[int]func()
			// dropped are those that its last plan had no more.
			dropped map[int]bool
			// handed are what ends the hand-overs to it, by object.
			handed map[int][]func()
		}
		m, model := &moves{}, make([]state, runs)
		for i := range model {
			model[i].handed = map[int][]func(){}
		}
		// generations are of the ManagedResources, planned those that the last plans were for.
		var generations, planned [runs]int64
		form := func(i int, generation int64) *resourcesv1alpha1.ManagedResource {
			return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: owner(i).Name, Generation: generation}}
		}
		// may returns a context; with one that has ended only those go on who need not wait.
		may := func(wait bool) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			if wait {
				cancel()
			}
			t.Cleanup(cancel)
			return ctx
		}
		others := func(run int, what func(*state)) {
			for i := range model {
				if i != run {
					what(&model[i])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"a run is about to lose objects": func(t *rapid.T) {
				run := rapid.IntRange(0, runs-1).Draw(t, "run")
				s := &model[run]
				if s.endLoss != nil {
					return
				}
				lost := refs[:rapid.IntRange(1, things).Draw(t, "objects")]
				mustWait := false
				for object := range lost {
					mustWait = mustWait || len(s.handed[object]) > 0
				}
				end, err := m.lose(may(mustWait), owner(run), lost)
				if (err != nil) != mustWait {
					t.Fatalf("it waits: %t, want %t", err != nil, mustWait)
				}
				if err != nil {
					return
				}
				s.endLoss, s.lost = end, len(lost)
				s.wanted, s.deleting, s.answered = map[int]bool{}, map[int]bool{}, map[int]func(){}
				others(run, func(other *state) {
					for object := range other.gains {
						s.wanted[object] = true
					}
				})
			},
			"it has ended": func(t *rapid.T) {
				s := &model[rapid.IntRange(0, runs-1).Draw(t, "run")]
				if s.endLoss == nil || len(s.deleting) > 0 {
					return
				}
				s.endLoss()
				s.endLoss, s.lost = nil, 0
			},
			"a run is about to get objects": func(t *rapid.T) {
				run := rapid.IntRange(0, runs-1).Draw(t, "run")
				s := &model[run]
				if s.endGain != nil {
					return
				}
				s.gains = rapid.MapOfN(rapid.IntRange(0, things-1), rapid.Just(true), 1, things).Draw(t, "objects")
				var keys []plan.Key
				mustWait := false
				for object := range s.gains {
					keys = append(keys, key(object))
					others(run, func(other *state) {
						if object < other.lost {
							other.wanted[object] = true
							mustWait = mustWait || other.deleting[object]
						}
					})
				}
				end, err := m.get(may(mustWait), owner(run), keys)
				if (err != nil) != mustWait {
					t.Fatalf("it waits: %t, want %t", err != nil, mustWait)
				}
				if s.endGain = end; end == nil {
					s.gains = nil
				}
			},
			"it has them": func(t *rapid.T) {
				s := &model[rapid.IntRange(0, runs-1).Draw(t, "run")]
				if s.endGain == nil {
					return
				}
				s.endGain()
				s.endGain, s.gains = nil, nil
			},
			"a deletion is sent": func(t *rapid.T) {
				run, object := rapid.IntRange(0, runs-1).Draw(t, "run"), rapid.IntRange(0, things-1).Draw(t, "object")
				s := &model[run]
				if s.deleting[object] {
					return
				}
				answered := m.deletes(owner(run), key(object))
				if allowed := object < s.lost && !s.wanted[object]; allowed != (answered != nil) {
					t.Fatalf("allowed: %t, want %t", answered != nil, allowed)
				}
				if answered != nil {
					s.deleting[object], s.answered[object] = true, answered
				}
			},
			"a run makes a plan": func(t *rapid.T) {
				run, drops := rapid.IntRange(0, runs-1).Draw(t, "run"), rapid.IntRange(0, things).Draw(t, "drops")
				s := &model[run]
				m.plan(form(run, generations[run]), refs[:drops])
				s.dropped = map[int]bool{}
				planned[run] = generations[run]
				for object := range drops {
					s.dropped[object] = true
				}
			},
			"a ManagedResource has another form": func(t *rapid.T) { generations[rapid.IntRange(0, runs-1).Draw(t, "run")]++ },
			"a ManagedResource is forgotten": func(t *rapid.T) {
				run := rapid.IntRange(0, runs-1).Draw(t, "run")
				m.forget(owner(run))
				model[run].dropped = nil
			},
			"an object is handed over": func(t *rapid.T) {
				heir, object := rapid.IntRange(0, runs-1).Draw(t, "heir"), rapid.IntRange(0, things-1).Draw(t, "object")
				s := &model[heir]
				answered := m.hands(key(object), owner(heir))
				if allowed := object >= s.lost; allowed != (answered != nil) {
					t.Fatalf("allowed: %t, want %t", answered != nil, allowed)
				}
				if answered != nil {
					s.handed[object] = append(s.handed[object], answered)
				}
			},
			"that is answered": func(t *rapid.T) {
				s := &model[rapid.IntRange(0, runs-1).Draw(t, "heir")]
				for object, answers := range s.handed {
					answers[0]()
					if s.handed[object] = answers[1:]; len(answers) == 1 {
						delete(s.handed, object)
					}
				}
			},
			"it is answered": func(t *rapid.T) {
				s := &model[rapid.IntRange(0, runs-1).Draw(t, "run")]
				for object := range s.deleting {
					s.answered[object]()
					delete(s.deleting, object)
				}
			},
			"": func(t *rapid.T) {
				for i := range model {
					for object := range refs {
						keeps := object >= model[i].lost && (!model[i].dropped[object] || planned[i] != generations[i])
						if m.keeps(form(i, generations[i]), key(object)) != keeps {
							t.Fatalf("run %d, object %d: keeps is not %t", i, object, keeps)
						}
						if m.leaves(owner(i), key(object)) != (object < model[i].lost) {
							t.Fatalf("run %d, object %d: leaves is wrong", i, object)
						}
					}
				}
			},
		})
		for i := range model {
			if model[i].endGain != nil {
				model[i].endGain()
			}
			m.forget(owner(i))
			if model[i].endLoss != nil {
				model[i].endLoss()
			}
			for _, answers := range model[i].handed {
				for _, answered := range answers {
					answered()
				}
			}
		}
		if len(m.losing)+len(m.getting)+len(m.handing)+len(m.dropped) > 0 {
			t.Fatal("something is remembered after all runs have ended")
		}
	})
}
