package objects

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// scopeWatch is a watch of a scope: it sees the object while filter holds, and reports what it has not delivered yet from queue.
type scopeWatch struct {
	name    string
	covers  func(Ref) bool
	labels  bool // only with the label
	running bool
	cut     bool // a gap: nothing is queued until it is listed
	queue   []scopeEvent
	since   string
	listing *ListSession
	listed  bool
}

type scopeEvent struct {
	gone bool
	o    labelledObject
}

type labelledObject struct {
	there    bool
	uid      string
	version  int
	right    bool
	labelled bool
}

func (o labelledObject) sighting(ref Ref) Observation {
	return Observation{ID: ref.ID, UID: types.UID(o.uid), ResourceVersion: fmt.Sprint(o.version), Desired: 1, Unlabelled: !o.labelled}
}

type scopeAnswer struct {
	owner Owner
	o     labelledObject
	since Revision
	write bool
}

// TestModelOfScopes goes beyond TestModel: an object is seen by several watches, those of two versions, each
// with gaps and lists of its own; ManagedResources come and go, and health reads what is tracked as missing. Nothing is restored, so that
// nothing proves that.
func TestModelOfScopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reads, versions := rapid.Bool().Draw(t, "health reads"), rapid.Bool().Draw(t, "versions")
		plain, other := cm, cm
		other.Version = "v2"
		r := newRecorder(nil)
		wronglyProven := ""
		r.Subscribe(Subscriber{Restored: func(proof string) { wronglyProven = proof }})
		labelled := &scopeWatch{name: "labelled", labels: true, covers: func(ref Ref) bool { return ref.Version == "v1" }}
		second := &scopeWatch{name: "v2", labels: true, covers: func(ref Ref) bool { return ref.Version == "v2" }}
		scopes := []*scopeWatch{labelled, second}
		version, uids := 100, 0
		o := labelledObject{}
		var answers []scopeAnswer
		has := map[Owner]Ref{}
		scopeOf := func(ref Ref) *scopeWatch {
			for _, s := range scopes {
				if s.covers(ref) {
					return s
				}
			}
			return nil
		}
		used := func(s *scopeWatch) bool {
			for _, ref := range has {
				if scopeOf(ref) == s {
					return true
				}
			}
			return false
		}
		track := func(owner Owner, ref *Ref) {
			if ref == nil {
				r.Track(owner, nil)
				delete(has, owner)
				return
			}
			r.Track(owner, []Ref{*ref})
			has[owner] = *ref
			if s := scopeOf(*ref); !s.running {
				*s = scopeWatch{name: s.name, covers: s.covers, labels: s.labels, running: true, cut: true}
			}
		}
		sees := func(s *scopeWatch, x labelledObject) bool { return x.there && (!s.labels || x.labelled) }
		change := func(do func()) {
			before := o
			version++
			do()
			o.version = version
			for _, s := range scopes {
				if !s.running || s.cut && (s.listing == nil || !s.listed) {
					continue
				}
				switch was, is := sees(s, before), sees(s, o); {
				case is:
					s.queue = append(s.queue, scopeEvent{false, o})
				case was:
					gone := before
					gone.version = version
					s.queue = append(s.queue, scopeEvent{true, gone})
				}
			}
		}
		right := func() bool { return o.there && o.right && o.labelled }
		write := func() {
			change(func() {
				if !o.there {
					uids++
					o.uid = fmt.Sprint("u", uids)
				}
				o.there, o.right, o.labelled = true, true, true
			})
		}
		start := func(s *scopeWatch) {
			s.listing, s.listed = r.StartListSession(Report, cm.GroupKind(), s.since, s.covers), false
		}
		data := func(s *scopeWatch) {
			s.since = fmt.Sprint(version)
			s.listing.At(s.since)
			s.queue, s.listed = nil, true
			if sees(s, o) {
				s.listing.Observe(o.sighting(cm))
			}
		}
		end := func(s *scopeWatch) {
			s.listing.End()
			s.listing, s.cut = nil, false
		}
		deliver := func(s *scopeWatch) {
			e := s.queue[0]
			s.queue = s.queue[1:]
			s.since = fmt.Sprint(e.o.version)
			if e.gone {
				r.observeGone(cm.ID, types.UID(e.o.uid), s.since)
			} else {
				r.Observe(e.o.sighting(cm))
			}
		}
		look := func(owner Owner) {
			since := r.Get(cm.ID).Revision
			r.Writing(cm.ID, 1)
			if !right() {
				write()
			}
			answers = append(answers, scopeAnswer{owner, o, since, true})
		}
		take := func(a scopeAnswer) {
			s := a.o.sighting(cm)
			s.Since = a.since
			if a.write {
				r.MarkInSync(a.owner, s)
				r.Written(cm.ID)
				return
			}
			r.Observe(s)
		}
		pickS := rapid.SampledFrom(scopes)
		pickO := rapid.SampledFrom([]Owner{mr1, mr2})
		refs := []Ref{plain}
		if versions {
			refs = append(refs, other)
		}
		quiet := func() bool {
			for _, s := range scopes {
				if s.running && (s.cut || s.listing != nil || len(s.queue) > 0) {
					return false
				}
			}
			return len(answers) == 0
		}
		track(mr1, &plain)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				must.True(t, wronglyProven == "",
					"%s is taken for a proof of a restore, and there was none: %+v, and it is %+v", wronglyProven, r.Get(cm.ID), o)
				f := r.Get(cm.ID)
				if quiet() && f.InSync && !right() {
					t.Fatalf("all watches cover, all is reported; it is verified, and is %+v: %+v", o, f)
				}
				must.False(t, f.OutOfSync && len(r.Progress(mr1).OutOfSync)+len(r.Progress(mr2).OutOfSync) == 0,
					"out of sync, and no owner has to check it: %+v", f)
			},
			"mr2 tracks":     func(t *rapid.T) { track(mr2, &refs[rapid.IntRange(0, len(refs)-1).Draw(t, "ref")]) },
			"mr1 runs again": func(*rapid.T) { track(mr1, &plain) },
			"mr2 lets it go": func(*rapid.T) { track(mr2, nil) },
			"somebody edits": func(t *rapid.T) {
				change(func() {
					if !o.there {
						uids++
						o.uid = fmt.Sprint("u", uids)
						o.there = true
					}
					o.right = false
				})
			},
			"label goes": func(t *rapid.T) {
				if !o.there {
					t.Skip("it is not there")
				}
				change(func() { o.labelled = false })
			},
			"somebody deletes": func(t *rapid.T) {
				if !o.there {
					t.Skip("it is not there")
				}
				change(func() { o.there, o.labelled, o.right = false, false, false })
			},
			"another object changes": func(*rapid.T) { version++ },
			"event": func(t *rapid.T) {
				s := pickS.Draw(t, "scope")
				if len(s.queue) == 0 || s.cut {
					t.Skip("none is on its way")
				}
				deliver(s)
			},
			"cut": func(t *rapid.T) {
				s := pickS.Draw(t, "scope")
				if !s.running || s.cut {
					t.Skip("it does not watch")
				}
				s.cut, s.queue = true, nil
			},
			"list": func(t *rapid.T) {
				s := pickS.Draw(t, "scope")
				switch {
				case !s.running || !s.cut:
					t.Skip("it watches, or has ended")
				case s.listing == nil:
					start(s)
				case !s.listed:
					data(s)
				default:
					end(s)
				}
			},
			"linger ends": func(t *rapid.T) {
				s := pickS.Draw(t, "scope")
				if !s.running || used(s) {
					t.Skip("it has ended, or is in use")
				}
				s.running, s.listing, s.queue = false, nil, nil
			},
			"run": func(t *rapid.T) {
				one := pickO.Draw(t, "owner")
				if _, h := has[one]; !h {
					t.Skip("it does not have the object")
				}
				look(one)
			},
			"answer": func(t *rapid.T) {
				if len(answers) == 0 {
					t.Skip("none is on its way")
				}
				i := rapid.IntRange(0, len(answers)-1).Draw(t, "which")
				a := answers[i]
				answers = append(answers[:i:i], answers[i+1:]...)
				take(a)
			},
			"health reads what is missing": func(t *rapid.T) {
				f := r.Get(cm.ID)
				if !reads || f.Present {
					t.Skip("nothing is missing")
				}
				if !o.there {
					r.Observe(Observation{ID: cm.ID, Since: f.Revision, Gone: true})
					return
				}
				answers = append(answers, scopeAnswer{o: o, since: f.Revision})
			},
		})
	})
}

// The answer to a request that was sent before other lists began to report an object says nothing of what the previous lists did not report any more.
func TestAnswerFromBeforeOtherLists(t *testing.T) {
	other := cm
	other.Version = "v2"
	r := newRecorder(map[Owner][]Ref{mr1: {cm}})
	late := sighting(cm, "u", "5", 0)
	late.Since = r.Get(cm.ID).Revision
	r.Track(mr1, []Ref{other})
	r.Track(mr1, []Ref{cm})
	r.MarkInSync(mr1, late)
	got := r.Get(cm.ID)
	expect.True(t, !got.InSync && got.OutOfSync, "got %+v", got)
	late.Since = r.Get(cm.ID).Revision
	r.MarkInSync(mr1, late)
	if got := r.Get(cm.ID); !got.InSync {
		t.Errorf("a second check does not end it: %+v", got)
	}
}

// A list of which some pages were there before an object was tracked does not prove that it is missing.
func TestTrackedWhileItIsListed(t *testing.T) {
	r := newRecorder(nil)
	x := r.StartListSession(Report, cm.GroupKind(), "", everything)
	x.At("100")
	x.Observe(sighting(cm, "u", "50", 0))
	r.Track(mr1, []Ref{cm})
	x.End()
	got := r.Get(cm.ID)
	expect.False(t, got.Known, "known as %+v, and it is there", got)
}

// MRB-47: an object that is written while its scope is listed needs no other check if its version is later than that of the list, whether the response
// arrives before or after the end of the list. An earlier version may have been deleted before the list.
func TestListSession_WriteDuringTheList(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		late    bool
		inSync  bool
	}{
		"later, before the end":   {version: "150", inSync: true},
		"later, after the end":    {version: "150", late: true, inSync: true},
		"earlier, before the end": {version: "50"},
		"earlier, after the end":  {version: "50", late: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(nil)
			x := r.StartListSession(Report, cm.GroupKind(), "", everything)
			x.At("100")
			r.Track(mr1, []Ref{cm})
			response := sighting(cm, "u", tc.version, 0)
			response.Since = r.Get(cm.ID).Revision
			if !tc.late {
				r.MarkInSync(mr1, response)
			}
			x.End()
			if tc.late {
				r.MarkInSync(mr1, response)
			}
			got := r.Get(cm.ID)
			expect.Equal(t, got.InSync, tc.inSync)
			response.Since = got.Revision
			r.MarkInSync(mr1, response)
			expect.True(t, r.Get(cm.ID).InSync, "a check after the list counts in any version")
			r.MarkOutOfSync(cm.ID)
			r.MarkInSync(mr1, response)
			expect.False(t, r.Get(cm.ID).InSync, "a check before the latest request counts")
		})
	}
}
