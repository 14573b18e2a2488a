package objects

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/test/must"
)

// world is an API server with one object, as a model: what there is, at which version, and whether it is as it should be.
type world struct {
	version int
	object  *object
	// history is what the watch has not delivered yet.
	history []change
	uids    int
	// was is what there was at each version, for backups.
	was map[int]*object
}

type object struct {
	uid     string
	version int
	digest  uint64 // of all but the status
	ours    bool   // as it should be
}

// answer is one to a request of ours, with what was tracked when it was sent.
type answer struct {
	object
	since Revision
	// partial is true if it says that the API server did not keep all.
	partial bool
}

func (a answer) notify(digests bool) Observation {
	s := a.sighting(digests)
	s.Since = a.since
	if a.partial {
		s.RetryPartial = time.Unix(1, 0)
	}
	return s
}

type change struct {
	gone   bool
	object object
}

// record notes what happened to the object.
func (w *world) record(gone bool) {
	w.history = append(w.history, change{gone, *w.object})
	w.was[w.version] = nil
	if !gone {
		copied := *w.object
		w.was[w.version] = &copied
	}
}

// restore goes back to a version; what was later has never been.
func (w *world) restore(version int) {
	w.version, w.object, w.history = version, nil, nil
	for v := range w.was {
		if v > version {
			delete(w.was, v)
		}
	}
	for v := version; v > 0; v-- {
		if object, found := w.was[v]; found {
			if object != nil {
				copied := *object
				w.object = &copied
			}
			return
		}
	}
}

// write changes the object, or creates it.
func (w *world) write(ours bool) object {
	w.version++
	if w.object == nil {
		w.uids++
		w.object = &object{uid: fmt.Sprint("u", w.uids)}
	}
	digest := uint64(1000)
	if !ours {
		digest = uint64(w.version)
	}
	w.object.version, w.object.ours, w.object.digest = w.version, ours, digest
	w.record(false)
	return *w.object
}

func (o object) sighting(digests bool) Observation {
	s := Observation{ID: cm.ID, UID: types.UID(o.uid), ResourceVersion: fmt.Sprint(o.version), Desired: 1,
		Version: cm.Version, Health: &healthcheck.Status{Unhealthy: fmt.Sprint(o.version)}}
	if digests {
		s.Digest = o.digest
	}
	return s
}

// TestModel interleaves what happens in the target with late events, late answers, gaps, lists and restores of etcd. All
// along the tracker never calls verified what is later known to have changed; at the end, once everything was delivered,
// an object that is not as it should be is out of sync, and a check of it ends that.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r *recorder
		const first = 100
		w := &world{version: first, was: map[int]*object{}}
		digests := rapid.Bool().Draw(t, "the generation counts")
		partial := rapid.Bool().Draw(t, "a part is kept")
		swept := false       // the sweep checks objects that are out of sync
		since := ""          // what the watch has reached
		var answers []answer // of our reads and writes, on their way
		looked := false      // somebody has compared the object since the start
		blind := false       // no list and no watch reports anything since a restore
		alone := true        // nobody but us has changed the object since the start, and nothing was forgotten
		// sent is a request, and what the API server did about it before its answer arrives.
		sent := func(did func() object) {
			since := r.Get(cm.ID).Revision
			r.Writing(cm.ID, 1)
			answers = append(answers, answer{did(), since, partial})
		}
		lost := func(n int) {
			answers = answers[n:]
			for range n {
				r.Written(cm.ID)
			}
		}

		restored := false // there is a proof of a restore
		var list func()
		restart := func() {
			r = newRecorder(map[Owner][]Ref{mr1: {cm}})
			r.Subscribe(Subscriber{Restored: func(string) { restored = true }})
			answers, since, looked, blind, alone = nil, "", false, false, false
			restored = false
			list()
		}
		list = func() {
			x := r.StartListSession(Report, cm.GroupKind(), since, everything)
			since = fmt.Sprint(w.version)
			x.At(since)
			if w.object != nil {
				x.Observe(w.object.sighting(digests))
			}
			x.End()
			w.history = nil
			if restored {
				restart()
			}
		}
		take := func(a answer) {
			r.MarkInSync(mr1, a.notify(digests))
			r.Written(cm.ID)
			if restored {
				restart()
			}
		}
		deliver := func() {
			next := w.history[0]
			w.history = w.history[1:]
			since = fmt.Sprint(next.object.version)
			if next.gone {
				r.observeGone(cm.ID, types.UID(next.object.uid), since)
			} else {
				r.Observe(next.object.sighting(digests))
			}
		}
		// honest holds that a verified object is as it was reported last: nothing that was delivered contradicts it.
		honest := func() {
			if blind {
				return // What was turned back is found by whoever looks, at the end.
			}
			snapshot := r.Get(cm.ID, cm.Version)
			swept = swept && snapshot.OutOfSync
			if snapshot.InSync && !snapshot.Present {
				t.Fatalf("verified, and not there: %+v", snapshot)
			}
			if snapshot.InSync && len(w.history) == 0 && len(answers) == 0 && (w.object == nil || !w.object.ours) {
				t.Fatalf("verified as %+v, though all is reported, and it is %+v", snapshot, w.object)
			}
			if notify := len(w.history) == 0 && w.object != nil && snapshot.Present; notify && snapshot.Health.Unhealthy != fmt.Sprint(w.object.version) {
				t.Fatalf("health of %+v, though all is reported, and it is %+v", snapshot, w.object)
			}
			must.False(t, snapshot.OutOfSync && len(r.Progress(mr1).OutOfSync) == 0, "out of sync, and no owner has to check it: %+v", snapshot)
			if snapshot.RetryPartial && !snapshot.OutOfSync {
				t.Fatalf("to be written again, and not out of sync: %+v", snapshot)
			}
			if snapshot.OutOfSync && len(answers) == 0 && len(r.drift) == 0 && !swept {
				t.Fatalf("out of sync, and no subscriber was notified: %+v", snapshot)
			}
			must.False(t, alone && len(r.drift) > 0, "notified of drift, though nobody else changed it: %+v", snapshot)
		}
		restart()
		alone = true
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { honest() },
			"we look": func(t *rapid.T) {
				sent(func() object {
					if w.object != nil && w.object.ours {
						return *w.object
					}
					return w.write(true)
				})
				looked = true
			},
			"an answer arrives": func(t *rapid.T) {
				if len(answers) == 0 {
					t.Skip("none is on its way")
				}
				i := rapid.IntRange(0, len(answers)-1).Draw(t, "which")
				a := answers[i]
				answers = append(answers[:i:i], answers[i+1:]...)
				take(a)
			},
			"an answer is lost": func(t *rapid.T) {
				if len(answers) == 0 {
					t.Skip("none is on its way")
				}
				lost(1)
				alone = false // What a lost answer would have said is not known.
			},
			"somebody changes it": func(*rapid.T) {
				w.write(false)
				alone = false
			},
			"its status changes": func(t *rapid.T) {
				if w.object == nil {
					t.Skip("it is not there")
				}
				w.version++
				w.object.version = w.version
				w.record(false)
				alone = alone && digests // Else it may be any change.
			},
			"somebody deletes it": func(t *rapid.T) {
				if w.object == nil {
					t.Skip("it is not there")
				}
				w.version++
				w.object.version = w.version
				w.record(true)
				w.object, alone = nil, false
			},
			"an event arrives": func(t *rapid.T) {
				if len(w.history) == 0 || blind {
					t.Skip("none is on its way")
				}
				deliver()
			},
			"a gap, and a list": func(*rapid.T) {
				list() // A store that has caught up with what was known may say nothing that contradicts it.
			},
			"etcd is restored": func(t *rapid.T) {
				if w.version == first {
					t.Skip("no backup is that old")
				}
				// Answers from before are lost: their connections were cut.
				lost(len(answers))
				alone = false
				w.restore(rapid.IntRange(first, w.version-1).Draw(t, "backup"))
				if rapid.Bool().Draw(t, "and lists are forbidden") {
					blind = true
				} else {
					list() // The watch ends with an error.
				}
			},
			"its kind changes": func(*rapid.T) {
				r.RetryKind(cm.GroupKind())
				alone = alone && !partial
			},
			"its time comes": func(*rapid.T) {
				r.Sweep(time.Unix(2, 0))
				swept = partial
			},
			"we restart": func(*rapid.T) { restart() },
		})
		for len(w.history) > 0 && !blind {
			deliver()
		}
		// All answers and events on the way arrive, and the owners check the object.
		for rounds := 0; ; rounds++ {
			for len(answers) > 0 {
				a := answers[0]
				answers = answers[1:]
				take(a)
			}
			// Objects without news are looked at in any case.
			if again := blind && rounds == 0; !again && (r.Get(cm.ID).InSync || looked && len(r.Progress(mr1).OutOfSync) == 0) {
				break
			}
			must.True(t, rounds <= 2, "there is no end: %+v, and it is %+v", r.Get(cm.ID), w.object)
			if w.object == nil || !w.object.ours {
				w.write(true)
			}
			sent(func() object { return *w.object })
			looked = true
			for len(w.history) > 0 && !blind {
				deliver()
			}
		}
		w.history, blind = nil, false
		honest()
	})
}
