package objects

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// TestModelOfOwners has three owners that track, run, leave and pass at any time, with digests that do not change with the status, answers late,
// retries. At rest: what is verified is right; what is not is in doubt of the last owner, who was told; and who is told ends.
func TestModelOfOwners(t *testing.T) {
	mr3 := Owner{Namespace: "ns", Name: "three"}
	owners := []Owner{mr1, mr2, mr3}
	rapid.Check(t, func(t *rapid.T) {
		digests := rapid.Bool().Draw(t, "digests")
		r := newRecorder(nil)
		queued := map[Owner]bool{}
		r.Subscribe(Subscriber{Drift: func(o Owner, _ ID) { queued[o] = true },
			VersionsWentBackwards: func() { t.Fatalf("no restore here") }})
		version, digest, uid := 100, uint64(1), 1
		there, right := true, false
		type snap struct {
			there, right bool
			s            Observation
		}
		now := func() snap {
			s := Observation{ID: cm.ID, UID: types.UID(fmt.Sprint(uid)), ResourceVersion: fmt.Sprint(version), Desired: 1}
			if digests {
				s.Digest = digest
			}
			return snap{there, right, s}
		}
		var queue []snap
		tell := func() { queue = append(queue, now()) }
		type answer struct {
			o    Owner
			x    snap
			left Owner
		}
		var answers []answer
		has := map[Owner]bool{}
		held := map[Owner]bool{} // It waits for its time, and looks then if it is in doubt still.
		able := map[Owner]bool{mr1: true, mr2: true, mr3: true}
		pick := rapid.SampledFrom(owners)
		putRight := func() {
			if there && right {
				return
			}
			if !there {
				uid++
			}
			version++
			there, right = true, true
			digest++
			tell()
		}
		runs := func(o Owner) bool { // A ManagedResource has one run at a time.
			return slices.ContainsFunc(answers, func(a answer) bool { return a.o == o })
		}
		look := func(o Owner) {
			queued[o] = false
			if !has[o] {
				return
			}
			r.Track(o, []Ref{cm})
			if !able[o] {
				r.PassAllOutOfSync(o, everyKey)
				return
			}
			if runs(o) {
				queued[o] = true
				return
			}
			since := r.Get(cm.ID).Revision
			r.Writing(cm.ID, 1)
			putRight()
			x := now()
			x.s.Since = since
			answers = append(answers, answer{o, x, Owner{}})
		}
		take := func(a answer) {
			if a.left != (Owner{}) {
				r.ObservePresent(a.x.s)
				r.Transfer(a.o, a.left, a.x.s)
			} else {
				r.MarkInSync(a.o, a.x.s)
			}
			r.Written(cm.ID)
		}
		deliver := func() {
			x := queue[0]
			queue = queue[1:]
			if x.there {
				r.ObservePresent(x.s)
			} else {
				r.ObserveDeleted(cm.ID, x.s.UID, x.s.ResourceVersion)
			}
		}
		check := func() {
			f := r.Get(cm.ID)
			dirty := 0
			for _, o := range owners {
				dirty += len(r.Progress(o).OutOfSync)
			}
			if f.OutOfSync && dirty == 0 {
				t.Fatalf("in doubt, nobody's: %+v", f)
			}
			if len(queue)+len(answers) == 0 && f.InSync && (!there || !right) {
				t.Fatalf("verified: %+v", f)
			}
		}
		tell()
		r.Track(mr1, []Ref{cm})
		has[mr1], queued[mr1] = true, true
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"tracks": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				r.Track(o, []Ref{cm})
				if !has[o] {
					queued[o] = true
				}
				has[o] = true
			},
			"forgets": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				if runs(o) {
					t.Skip("it runs")
				}
				r.Track(o, nil)
				has[o] = false
			},
			"edit": func(*rapid.T) {
				version++
				digest++
				if !there {
					uid++
				}
				there, right = true, false
				tell()
			},
			"status": func(t *rapid.T) {
				if !there {
					t.Skip("it is not there")
				}
				version++
				tell()
			},
			"delete": func(t *rapid.T) {
				if !there {
					t.Skip("it is not there")
				}
				version++
				there = false
				tell()
			},
			"event": func(t *rapid.T) {
				if len(queue) == 0 {
					t.Skip("none is on its way")
				}
				deliver()
			},
			"look": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				look(o)
			},
			"answer": func(t *rapid.T) {
				if len(answers) == 0 {
					t.Skip("none is on its way")
				}
				i := rapid.IntRange(0, len(answers)-1).Draw(t, "i")
				a := answers[i]
				answers = append(answers[:i:i], answers[i+1:]...)
				take(a)
			},
			"able": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				able[o] = !able[o]
				if able[o] && has[o] {
					queued[o] = true // It runs once it can.
				}
			},
			"waits": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				if !has[o] || !able[o] || runs(o) || !r.drifted(cm.ID, 1) {
					t.Skip("it cannot run, or does not wait")
				}
				queued[o], held[o] = false, true
				r.KeepOutOfSync(o, cm.ID)
			},
			"left": func(t *rapid.T) {
				o, k := pick.Draw(t, "o"), pick.Draw(t, "k")
				if o == k || !has[o] || !has[k] || !able[o] || runs(o) {
					t.Skip("it cannot run, or not both have the object")
				}
				queued[o] = false // It is a run, and puts it right if need be.
				r.Writing(cm.ID, 1)
				putRight()
				answers = append(answers, answer{o, now(), k})
			},
		})
		for round := 0; ; round++ {
			for len(queue) > 0 {
				deliver()
			}
			for len(answers) > 0 {
				a := answers[0]
				answers = answers[1:]
				take(a)
			}
			busy := false
			for _, o := range owners {
				due := held[o] && len(r.Progress(o).OutOfSync) > 0
				held[o] = false
				if queued[o] || due {
					busy = true
					look(o)
				}
			}
			if !busy {
				break
			}
			if round > 12 {
				t.Fatalf("told for ever: %+v %v", r.Get(cm.ID), queued)
			}
		}
		check()
		canLook := false
		for _, o := range owners {
			canLook = canLook || has[o] && able[o]
		}
		if f := r.Get(cm.ID); canLook && f.Tracked && (!there || !right) {
			t.Fatalf("nobody puts it right, and nothing is queued: %+v there %t right %t; has %v able %v", f, there, right, has, able)
		}
	})
}

// MRB-16: two that have an object could not look for a while; the one that does not keep it can again, puts the drift right and leaves the object to
// its keeper, which still cannot look. Each later drift is to be passed on anew.
func TestDriftAfterAllCouldNotLook(t *testing.T) {
	for name, tc := range map[string]struct{ all, otherLast bool }{
		"only the keeper could not look":                                {false, false},
		"both could not look for a while, the keeper was tracked last":  {true, false},
		"both could not look for a while, the keeper was tracked first": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			next, other := mr1, mr2
			r := newRecorder(nil)
			order := []Owner{other, next} // After a start any order.
			if tc.otherLast {
				order = []Owner{next, other}
			}
			for _, owner := range order {
				r.Track(owner, []Ref{cm})
			}
			r.ObservePresent(sighting(cm, "u", "5", 0))
			r.ObservePresent(sighting(cm, "u", "6", 0)) // Somebody changes it.
			if tc.all {
				r.PassAllOutOfSync(order[1], everyKey)
				r.PassAllOutOfSync(order[0], everyKey)
				r.PassAllOutOfSync(order[1], everyKey)
			} else {
				r.PassAllOutOfSync(next, everyKey)
			}
			// The other one looks, as it was told, or as it can again: it puts it right, and leaves it to its keeper.
			looks := func(version string) {
				r.Writing(cm.ID, 1)
				r.ObservePresent(sighting(cm, "u", version, 0))
				r.Transfer(other, next, sighting(cm, "u", version, 0))
				r.Written(cm.ID)
			}
			looks("7")
			for i := range 3 {
				r.drift = nil
				r.ObservePresent(sighting(cm, "u", fmt.Sprint(8+2*i), 0)) // Somebody changes it again.
				r.PassAllOutOfSync(next, everyKey)                        // As each of its runs does.
				if len(r.drift) == 0 || r.drift[len(r.drift)-1] != other || len(r.Progress(other).OutOfSync) == 0 {
					t.Fatalf("drift %d: told to %v, in doubt of who can look: %v; the object: %+v", i, r.drift, r.Progress(other).OutOfSync, r.Get(cm.ID))
				}
				looks(fmt.Sprint(9 + 2*i))
			}
		})
	}
}

// MRB-16: who has looked can be asked again, whatever it said before.
func TestWhoHasLookedIsAskedAgain(t *testing.T) {
	able, next, other := mr1, mr2, Owner{Namespace: "ns", Name: "three"}
	r := newRecorder(nil)
	for _, owner := range []Owner{next, other, able} {
		r.Track(owner, []Ref{cm})
	}
	r.ObservePresent(sighting(cm, "u", "5", 0))
	r.ObservePresent(sighting(cm, "u", "6", 0)) // Somebody changes it.
	r.PassAllOutOfSync(able, everyKey)          // A Secret of it is missing just now.
	r.Transfer(able, next, sighting(cm, "u", "6", 0))
	r.drift = nil
	r.PassAllOutOfSync(next, everyKey)
	r.PassAllOutOfSync(other, everyKey)
	if len(r.drift) == 0 || r.drift[len(r.drift)-1] != able {
		t.Errorf("told to %v, and not to the one that can look", r.drift)
	}
}

// MR-20: a doubt that no version of the object shows, such as that the grace of its autoscaler is over, is not settled by a look that began before it.
func TestDoubtDuringALook(t *testing.T) {
	r := newRecorder(nil)
	r.Track(mr1, []Ref{deploy})
	r.MarkInSync(mr1, sighting(deploy, "u", "5", 1))
	look := func(version string, meanwhile func()) {
		answer := sighting(deploy, "u", version, 1)
		answer.Since = r.Get(deploy.ID).Revision
		r.Writing(deploy.ID, 1)
		meanwhile()
		r.MarkInSync(mr1, answer)
		r.Written(deploy.ID)
	}
	look("6", func() { r.MarkOutOfSync(deploy.ID) })
	if len(r.Progress(mr1).OutOfSync) != 1 || len(r.drift) != 1 {
		t.Errorf("the doubt came after the look had begun, and is gone: %+v, in doubt %v, told %d times", r.Get(deploy.ID), r.Progress(mr1).OutOfSync, len(r.drift))
	}
	if look("6", func() {}); !r.Get(deploy.ID).InSync || len(r.drift) != 1 {
		t.Errorf("the next look does not settle it: %+v, told %d times", r.Get(deploy.ID), len(r.drift))
	}
}
