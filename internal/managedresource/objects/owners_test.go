package objects

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestModelOfOwners has three owners that track, run and leave at any time, with digests that do not change with the status, and late answers. The owner
// that the origin names writes the object, the others find it kept. At rest: a verified object is right, one that is not has been reported to an owner, and
// runs end.
func TestModelOfOwners(t *testing.T) {
	owners := []Owner{mr1, mr2, {Namespace: "ns", Name: "three"}}
	rapid.Check(t, func(t *rapid.T) {
		m := &ownersModel{T: t, r: newRecorder(nil), digests: rapid.Bool().Draw(t, "digests"), version: 100, uid: 1, there: true,
			has: map[Owner]bool{}, queued: map[Owner]bool{}, failing: map[Owner]bool{}}
		m.r.Subscribe(Subscriber{Drift: func(o Owner, _ ID) { m.queued[o] = true }})
		pick := rapid.SampledFrom(owners)
		m.report()
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				outOfSync := 0
				for _, o := range owners {
					outOfSync += len(m.r.Progress(o).OutOfSync)
				}
				expect.Equal(t, m.r.Get(cm.ID).OutOfSync, outOfSync > 0,
					"MRB-16: out of sync, and to be checked by %d owners", outOfSync)
			},
			"tracks": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				m.r.Track(o, []Ref{cm})
				m.queued[o] = m.queued[o] || !m.has[o]
				m.has[o] = true
			},
			"forgets": func(t *rapid.T) {
				if o := pick.Draw(t, "o"); !m.runs(o) {
					m.r.Track(o, nil)
					m.has[o] = false
				}
			},
			"fails or recovers": func(t *rapid.T) {
				o := pick.Draw(t, "o")
				m.failing[o] = !m.failing[o]
				m.queued[o] = m.queued[o] || m.has[o]
			},
			"edit":   func(*rapid.T) { m.write(false) },
			"status": func(*rapid.T) { m.version++; m.report() },
			"delete": func(*rapid.T) { m.version, m.there = m.version+1, false; m.report() },
			"event": func(*rapid.T) {
				if len(m.events) > 0 {
					m.deliver()
				}
			},
			"run": func(t *rapid.T) { m.run(pick.Draw(t, "o")) },
			"answer": func(t *rapid.T) {
				if len(m.answers) > 0 {
					m.take(rapid.IntRange(0, len(m.answers)-1).Draw(t, "i"))
				}
			},
		})
		for round := 0; ; round++ {
			for len(m.events) > 0 {
				m.deliver()
			}
			for len(m.answers) > 0 {
				m.take(0)
			}
			due := slices.Collect(maps.Keys(m.queued))
			for _, o := range due {
				m.run(o)
			}
			if len(due) == 0 {
				break
			}
			must.True(t, round <= 12, "notified for ever: %+v %v", m.r.Get(cm.ID), m.queued)
		}
		writer := m.writer()
		canRun := m.has[writer] && !m.failing[writer] || !m.has[writer] && slices.ContainsFunc(owners, func(o Owner) bool { return m.has[o] && !m.failing[o] })
		if f := m.r.Get(cm.ID); (canRun || f.InSync) && (!m.there || !m.right) {
			t.Fatalf("MRB-16: no owner repairs it: %+v, %+v", f, m)
		}
	})
}

// ownersModel is an object in the target, with the events and answers that the tracker does not have yet.
type ownersModel struct {
	*rapid.T
	r            *recorder
	digests      bool
	version, uid int
	digest       uint64
	there, right bool
	origin       Owner
	has, failing map[Owner]bool
	queued       map[Owner]bool
	events       []ownersAnswer
	answers      []ownersAnswer
}

type ownersAnswer struct {
	owner       Owner
	there, kept bool
	s           Observation
}

func (m *ownersModel) now() ownersAnswer {
	s := Observation{ID: cm.ID, UID: types.UID(fmt.Sprint(m.uid)), ResourceVersion: fmt.Sprint(m.version), Desired: 1}
	if m.digests {
		s.Digest = m.digest + 1
	}
	return ownersAnswer{there: m.there, s: s}
}

func (m *ownersModel) report() { m.events = append(m.events, m.now()) }

func (m *ownersModel) write(right bool) {
	if m.version++; !m.there {
		m.uid, m.origin = m.uid+1, Owner{}
	}
	m.there, m.right, m.digest = true, right, m.digest+1
	m.report()
}

func (m *ownersModel) writer() Owner {
	if m.there {
		return m.origin
	}
	return m.r.Get(cm.ID).Writer
}

// runs reports whether a run of an owner awaits an answer: a ManagedResource has one run at a time.
func (m *ownersModel) runs(o Owner) bool {
	return slices.ContainsFunc(m.answers, func(a ownersAnswer) bool { return a.owner == o })
}

func (m *ownersModel) run(o Owner) {
	if m.runs(o) {
		return
	}
	delete(m.queued, o)
	if !m.has[o] || m.failing[o] {
		return
	}
	m.r.Track(o, []Ref{cm})
	since := m.r.Get(cm.ID).Revision
	m.r.Writing(cm.ID, 1)
	kept := m.writer() != o && m.has[m.writer()]
	if !kept && (!m.there || !m.right || m.origin != o) {
		m.write(true)
		m.origin = o
	}
	answer := m.now()
	if answer.owner, answer.kept, answer.s.Since = o, kept, since; !m.there {
		answer.s = Observation{ID: cm.ID, Since: since}
	}
	m.answers = append(m.answers, answer)
}

func (m *ownersModel) take(i int) {
	a := m.answers[i]
	m.answers = slices.Delete(m.answers, i, i+1)
	if a.kept {
		m.r.markKept(a.owner, a.s)
	} else {
		m.r.MarkInSync(a.owner, a.s)
	}
	m.r.Written(cm.ID)
}

func (m *ownersModel) deliver() {
	x := m.events[0]
	m.events = m.events[1:]
	if x.there {
		m.r.Observe(x.s)
	} else {
		m.r.observeGone(cm.ID, x.s.UID, x.s.ResourceVersion)
	}
}

// MR-20: a request for a check that no version of the object shows, such as at the end of the grace of its autoscaler, is not met by a check that began before it.
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
		t.Errorf("the request for a check came after the check had begun, and is gone: %+v, out of sync %v, notified %d times", r.Get(deploy.ID), r.Progress(mr1).OutOfSync, len(r.drift))
	}
	if look("6", func() {}); !r.Get(deploy.ID).InSync || len(r.drift) != 1 {
		t.Errorf("the next check does not end it: %+v, notified %d times", r.Get(deploy.ID), len(r.drift))
	}
}
