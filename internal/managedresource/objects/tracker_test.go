package objects

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var (
	mr1, mr2 = Owner{Namespace: "ns", Name: "one"}, Owner{Namespace: "ns", Name: "two"}
	cm       = Ref{ID: ID{Kind: "ConfigMap", Namespace: "ns", Name: "cm"}, Version: "v1"}
	deploy   = Ref{ID: ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "d"}, Version: "v1"}
)

type recorder struct {
	*Tracker
	drift, health []Owner
	writes        map[ID][]*Ticket
}

// Writing issues a ticket to write an object, and reports whether the object was compared with the desired state.
func (r *recorder) Writing(id ID, desired uint64) (compared bool) {
	ticket, _ := r.Begin(ToApply, mr1, id)
	r.writes[id] = append(r.writes[id], ticket)
	return ticket.Desired == desired && (ticket.InSync || ticket.OutOfSync && !ticket.RetryPartial)
}

// Written ends the first ticket that Writing issued.
func (r *recorder) Written(id ID) {
	if tickets := r.writes[id]; len(tickets) > 0 {
		tickets[0].End()
		r.writes[id] = tickets[1:]
	}
}

func newRecorder(owners map[Owner][]Ref) *recorder {
	r := &recorder{Tracker: New(), writes: map[ID][]*Ticket{}}
	r.Subscribe(Subscriber{Drift: func(o Owner, _ ID) { r.drift = append(r.drift, o) },
		Health: func(o Owner) { r.health = append(r.health, o) }})
	for owner, refs := range owners {
		r.Track(owner, refs)
	}
	return r
}

func everything(Ref) bool { return true }

// list reports a complete list of ConfigMaps.
func (r *recorder) list(objects []Observation, version string) {
	x := r.StartListSession(Report, cm.GroupKind(), "", everything)
	x.At(version)
	for _, s := range objects {
		x.Observe(s)
	}
	x.End()
}

func sighting(ref Ref, uid, rv string, digest uint64) Observation {
	return Observation{ID: ref.ID, UID: types.UID(uid), ResourceVersion: rv, Digest: digest, Version: ref.Version}
}

func TestTracker_NotifiesOfDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(*recorder)
		want string
	}{
		"MRB-34/own write, event first": {func(r *recorder) {
			r.Observe(sighting(cm, "u", "5", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
		}, "[]"},
		"MRB-34/own write, event later": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "5", 0))
		}, "[]"},
		"MRB-34/an older event": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "4", 0))
		}, "[]"},
		"MRB-34/somebody's change": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "6", 0))
		}, "[ns/one]"},
		"MRB-34/a change of the status only": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 9))
			r.Observe(sighting(cm, "u", "6", 9))
		}, "[]"},
		"MRB-34/somebody's change during ours": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "7", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "6", 0))
		}, "[ns/one ns/one]"},
		"MRB-34/a deletion":                     {func(r *recorder) { r.MarkInSync(mr1, sighting(cm, "u", "5", 0)); r.observeGone(cm.ID, "u", "6") }, "[ns/one]"},
		"MRB-34/a deletion before our creation": {func(r *recorder) { r.MarkInSync(mr1, sighting(cm, "u", "5", 0)); r.observeGone(cm.ID, "", "4") }, "[]"},
		"MRB-34/a deletion of the predecessor":  {func(r *recorder) { r.MarkInSync(mr1, sighting(cm, "u", "5", 0)); r.observeGone(cm.ID, "old", "4") }, "[]"},
		"MRB-34/re-creation by somebody": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "other", "6", 0))
		}, "[ns/one]"},
		"MRB-34/not on record": {func(r *recorder) {
			r.Observe(sighting(deploy, "u", "6", 0))
			r.observeGone(deploy.ID, "", "")
		}, "[]"},
		"MRB-34/never verified": {func(r *recorder) {
			r.Observe(sighting(cm, "u", "6", 0))
			r.Observe(sighting(cm, "u", "7", 0))
		}, "[ns/one]"},
		"MRB-34/not in a complete list": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.list(nil, "9")
		}, "[ns/one]"},
		"MRB-34/written after the list was made": {func(r *recorder) {
			x := r.StartListSession(Report, cm.GroupKind(), "4", everything)
			r.MarkInSync(mr1, sighting(cm, "u", "9", 0))
			x.At("5")
			x.End()
		}, "[]"},
		"MRB-34/out of the list's scope": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			x := r.StartListSession(Report, cm.GroupKind(), "", func(Ref) bool { return false })
			x.At("9")
			x.End()
		}, "[]"},
		"MRB-34/a deletion after ours was written": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "6", 0))
			r.observeGone(cm.ID, "u", "8")
			r.MarkInSync(mr1, sighting(cm, "u", "7", 0))
		}, "[ns/one ns/one ns/one]"},
		"MRB-34/a replacement after ours was written": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.observeGone(cm.ID, "u", "8")
			r.Observe(sighting(cm, "other", "9", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "7", 0))
		}, "[ns/one ns/one]"},
		"MRB-34/a deletion during the first check": {func(r *recorder) {
			r.Observe(sighting(cm, "u", "5", 0))
			r.observeGone(cm.ID, "u", "6")
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
		}, "[ns/one ns/one]"},
		"MRB-34/a change during the first check": {func(r *recorder) {
			r.Observe(sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "6", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
		}, "[ns/one ns/one]"},
		"MRB-34/a late event after a deletion": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.observeGone(cm.ID, "u", "8")
			r.Observe(sighting(cm, "u", "7", 0))
			if r.Get(cm.ID).Present {
				r.drift = nil
			}
		}, "[ns/one]"},
		"MRB-34/a late answer that it was not there": {func(r *recorder) {
			before := r.Get(cm.ID)
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Observe(Observation{ID: cm.ID, Since: before.Revision, Gone: true})
		}, "[]"},
		"MRB-34/an answer that it is not there": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.observeGone(cm.ID, "", "")
		}, "[ns/one]"},
		"MRB-34/turned back before the list began": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "1000", 0))
			r.list([]Observation{sighting(cm, "u", "400", 0)}, "500")
		}, "[ns/one]"},
		"MRB-34/turned back, and gone": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "1000", 0))
			r.list(nil, "500")
		}, "[ns/one ns/one]"},
		"MRB-34/turned back, and caught up since": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "1000", 0))
			r.list([]Observation{sighting(cm, "u", "400", 0)}, "1500")
		}, "[ns/one]"},
		"MRB-34/versions that can't be ordered": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "a", 0))
			r.Observe(sighting(cm, "u", "c", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "b", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "b", 0))
		}, "[ns/one ns/one]"},
		"MRB-34/our creation, after a list without it, event first": {func(r *recorder) {
			r.list(nil, "4")
			r.Writing(cm.ID, 1)
			r.Observe(sighting(cm, "u", "5", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Written(cm.ID)
		}, "[]"},
		"MRB-34/our update, event first": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Writing(cm.ID, 1)
			r.Observe(sighting(cm, "u", "6", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "6", 0))
			r.Written(cm.ID)
		}, "[]"},
		"MRB-34/our update without an answer": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Writing(cm.ID, 1)
			r.Observe(sighting(cm, "u", "6", 0))
			r.Written(cm.ID)
		}, "[ns/one]"},
		"MRB-34/somebody's change after our update, before its answer": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Writing(cm.ID, 1)
			r.Observe(sighting(cm, "u", "6", 0))
			r.Observe(sighting(cm, "u", "7", 0))
			r.MarkInSync(mr1, sighting(cm, "u", "6", 0))
			r.Written(cm.ID)
		}, "[ns/one]"},
		"MRB-34/two writes, notified after both": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Writing(cm.ID, 1)
			r.Writing(cm.ID, 1)
			r.Observe(sighting(cm, "u", "6", 0))
			r.Written(cm.ID)
			if len(r.drift) > 0 {
				panic("notified before the end of the second")
			}
			r.Written(cm.ID)
		}, "[ns/one]"},
		"MRB-16/both of two are notified": {func(r *recorder) {
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Track(mr2, []Ref{cm})
			r.Observe(sighting(cm, "u", "6", 0))
		}, "[ns/one ns/two]"},
		"MRB-16/one that found it kept is notified of the next change": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			r.MarkInSync(mr2, sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "6", 0))
			r.markKept(mr1, sighting(cm, "u", "6", 0))
			r.MarkInSync(mr2, sighting(cm, "u", "7", 0))
			r.Observe(sighting(cm, "u", "8", 0))
		}, "[ns/two ns/one ns/two ns/one]"},
		"MRB-16/a verified object is nobody's work": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			r.Observe(sighting(cm, "u", "5", 0))
			r.Observe(sighting(cm, "u", "6", 0))
			r.MarkInSync(mr2, sighting(cm, "u", "6", 0))
			r.markKept(mr1, sighting(cm, "u", "6", 0))
		}, "[ns/one ns/two]"},
		"MRB-16/the writer leaves": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			r.MarkInSync(mr2, sighting(cm, "u", "5", 0))
			r.Track(mr2, nil)
		}, "[ns/one]"},
		"MRB-16/another one leaves": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
			r.Track(mr2, nil)
		}, "[]"},
		"MRB-16/one that found it kept is notified when the writer, which never verified it, leaves": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			r.Observe(sighting(cm, "u", "5", 0))
			r.markKept(mr1, sighting(cm, "u", "5", 0))
			r.Track(mr2, nil)
		}, "[ns/one]"},
		"MR-30/one that creates it only once leaves it to the other": {func(r *recorder) {
			r.Track(mr2, []Ref{cm})
			created := sighting(cm, "u", "5", 0)
			created.CreateOnly = true
			r.observeGone(cm.ID, "", "4")
			r.MarkInSync(mr1, created)
			if len(r.Progress(mr1).OutOfSync) > 0 || len(r.Progress(mr2).OutOfSync) != 1 {
				panic("the other one need not check it")
			}
		}, "[ns/one ns/two]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(map[Owner][]Ref{mr1: {cm}})
			tc.do(r)
			expect.Equal(t, fmt.Sprint(r.drift), tc.want)
		})
	}
}

func TestMarkInSync_EndsOutOfSync(t *testing.T) {
	r := newRecorder(map[Owner][]Ref{mr1: {cm}})
	s := sighting(cm, "u", "5", 0)
	s.Desired = 3
	r.MarkInSync(mr1, s)
	expect.True(t, r.inSync(cm.ID, 3) && !r.inSync(cm.ID, 4), "verified against one desired state only")
	r.Observe(sighting(cm, "u", "6", 0))
	expect.True(t, len(r.Progress(mr1).OutOfSync) == 1 && !r.inSync(cm.ID, 3) && r.Get(cm.ID).OutOfSync,
		"out of sync: %v", r.Progress(mr1).OutOfSync)
	s.ResourceVersion = "7"
	r.MarkInSync(mr1, s)
	expect.True(t, len(r.Progress(mr1).OutOfSync) == 0 && r.inSync(cm.ID, 3), "out of sync: %v", r.Progress(mr1).OutOfSync)
	r.Track(mr1, nil)
	expect.True(t, len(r.records) == 0 && len(r.Progress(mr1).Refs) == 0, "something is left")
}

func TestTracker_NotifiesOfHealth(t *testing.T) {
	r := newRecorder(map[Owner][]Ref{mr1: {deploy}})
	see := func(rv, unhealthy string) {
		s := sighting(deploy, "d", rv, 7)
		s.Health = &healthcheck.Status{Unhealthy: unhealthy}
		r.Observe(s)
	}
	see("1", "not yet")
	see("2", "not yet")
	see("3", "")
	see("4", "")
	expect.Equal(t, len(r.health), 2, "MRT-10: only changes of the judgement count, got %v", r.health)
	r.observeGone(deploy.ID, "d", "5")
	got := r.Get(deploy.ID)
	expect.True(t, !got.Present && got.Known && len(r.health) == 3, "got %+v", got)
}

func TestContentDigest_LeavesOutStatus(t *testing.T) {
	object := func(status, value string) map[string]any {
		return map[string]any{"kind": "X", "metadata": map[string]any{"name": "x", "resourceVersion": status, "labels": map[string]any{"a": value}},
			"spec": map[string]any{"list": []any{int64(1), value}, "a": "1", "b": "2"}, "status": map[string]any{"x": status}}
	}
	expect.Equal(t, ContentDigest(object("1", "v")), ContentDigest(object("2", "v")), "the status counts")
	expect.True(t, ContentDigest(object("1", "v")) != ContentDigest(object("1", "w")), "the content does not count")
	swapped := object("1", "v")
	swapped["spec"].(map[string]any)["a"], swapped["spec"].(map[string]any)["b"] = "2", "1"
	expect.True(t, ContentDigest(object("1", "v")) != ContentDigest(swapped), "swapped values go unnoticed")
}

// Owners in a manifest are compared with their flags, so that a change of these by somebody else is drift.
func TestMetadataDigest_HasFlagsOfOwners(t *testing.T) {
	owned := func(controller, blocks *bool) uint64 {
		return MetadataDigest(&metav1.ObjectMeta{Name: "d", Generation: 1, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "u", Controller: controller, BlockOwnerDeletion: blocks}}})
	}
	yes, no := ptr.To(true), ptr.To(false)
	seen := map[uint64]bool{}
	for _, flags := range [][2]*bool{{nil, nil}, {yes, nil}, {nil, yes}, {yes, yes}, {no, nil}, {nil, no}} {
		seen[owned(flags[0], flags[1])] = true
	}
	expect.Equal(t, len(seen), 6, "only %d of 6 kinds of owner are distinguished", len(seen))
}

// TestTracker_ComparesTheLastVersion is the property that whatever the order of a watch's and of the writes' reports, an object whose last version is
// not the verified one is out of sync, and one whose last version is verified is not.
func TestTracker_ComparesTheLastVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorder(map[Owner][]Ref{mr1: {cm}})
		r.MarkInSync(mr1, sighting(cm, "u", "1", 0))
		const last = 6
		own := map[int]bool{}
		for version := 2; version <= last; version++ {
			own[version] = rapid.Bool().Draw(t, "own")
		}
		// The watch reports all versions in order, the writes theirs in order; how they interleave is arbitrary.
		watch, write := 2, 2
		for watch <= last || write <= last {
			if write <= last && (watch > last || rapid.Bool().Draw(t, "write first")) {
				if own[write] {
					r.MarkInSync(mr1, sighting(cm, "u", fmt.Sprint(write), 0))
				}
				write++
				continue
			}
			r.Observe(sighting(cm, "u", fmt.Sprint(watch), 0))
			watch++
		}
		if outOfSync := len(r.Progress(mr1).OutOfSync) > 0; outOfSync == own[last] {
			t.Fatalf("the last version is ours: %t, out of sync: %t", own[last], outOfSync)
		}
	})
}

func TestTracker_ServesConcurrentCallers(*testing.T) {
	r := New()
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			for i := range 500 {
				owner := []Owner{mr1, mr2}[(worker+i)%2]
				r.Track(owner, []Ref{cm, deploy})
				r.MarkInSync(owner, sighting(cm, "u", fmt.Sprint(i), 0))
				r.Observe(sighting(deploy, "d", fmt.Sprint(i), 0))
				r.observeGone(cm.ID, "", "")
				_ = r.Progress(owner).OutOfSync
				_ = r.Get(cm.ID)
				r.Track(owner, nil)
			}
		})
	}
	running.Wait()
}

// MRT-10: an answer that is late proves that the object is as it should be, and says nothing of its health by now.
func TestMarkInSync_KeepsLaterHealth(t *testing.T) {
	r := newRecorder(map[Owner][]Ref{mr1: {deploy}})
	young, ready := sighting(deploy, "u", "5", 7), sighting(deploy, "u", "6", 7)
	young.Health, ready.Health = &healthcheck.Status{Unhealthy: "young"}, &healthcheck.Status{}
	r.Observe(ready)
	r.MarkInSync(mr1, young)
	got := r.Get(deploy.ID, deploy.Version)
	expect.True(t, got.Assessed && got.Health.Unhealthy == "" && r.inSync(deploy.ID, 0), "got %+v", got)
}

// MRB-8: an object of which the API server kept only a part is out of sync again when its time comes, which the sweep finds, or at once when its kind changes, which
// is notified. It is checked once, and is no drift; it is forgotten when the object is gone, or as it should be.
func TestRetryPartial_ChecksOnceMore(t *testing.T) {
	at := time.Unix(1000, 0)
	setUp := func() *recorder {
		r := newRecorder(map[Owner][]Ref{mr1: {cm, deploy}})
		s := sighting(cm, "u", "5", 1)
		s.Desired, s.RetryPartial = 7, at
		r.MarkInSync(mr1, s)
		r.MarkInSync(mr1, sighting(deploy, "d", "5", 1))
		return r
	}
	for name, tc := range map[string]struct {
		do            func(*recorder)
		again, notify bool
	}{
		"MRB-8/before its time":           {do: func(r *recorder) { r.Sweep(at.Add(-1)) }},
		"MRB-8/its time":                  {do: func(r *recorder) { r.Sweep(at) }, again: true},
		"MRB-8/its kind":                  {do: func(r *recorder) { r.RetryKind(cm.GroupKind()) }, again: true, notify: true},
		"MRB-8/once":                      {do: func(r *recorder) { r.RetryKind(cm.GroupKind()); r.RetryKind(cm.GroupKind()) }, again: true, notify: true},
		"MRB-8/another kind":              {do: func(r *recorder) { r.RetryKind(deploy.GroupKind()) }},
		"MRB-8/while it is written":       {do: func(r *recorder) { r.Writing(cm.ID, 7); r.Sweep(at); r.Written(cm.ID) }},
		"MRB-8/its kind, meanwhile":       {do: func(r *recorder) { r.Writing(cm.ID, 7); r.RetryKind(cm.GroupKind()); r.Written(cm.ID) }, again: true, notify: true},
		"MRB-8/kept since":                {do: func(r *recorder) { r.MarkInSync(mr1, sighting(cm, "u", "6", 1)); r.Sweep(at) }},
		"MRB-8/changed by others, before": {do: func(r *recorder) { r.Observe(sighting(cm, "u", "6", 2)); r.RetryKind(cm.GroupKind()) }, notify: true},
		"MRB-8/changed by others, since":  {do: func(r *recorder) { r.Sweep(at); r.Observe(sighting(cm, "u", "6", 2)) }, notify: true},
		"MRB-8/deleted by others, since":  {do: func(r *recorder) { r.Sweep(at); r.observeGone(cm.ID, "u", "6") }, notify: true},
		"MRB-8/not ours any more":         {do: func(r *recorder) { r.Track(mr1, nil); r.Sweep(at); r.RetryKind(cm.GroupKind()) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUp()
			tc.do(r)
			snapshot := r.Get(cm.ID)
			if snapshot.RetryPartial != tc.again || snapshot.RetryPartial && !snapshot.OutOfSync || len(r.drift) != map[bool]int{true: 1}[tc.notify] {
				t.Errorf("again %t, want %t; notified %v; %+v", snapshot.RetryPartial, tc.again, r.drift, snapshot)
			}
			others := strings.Contains(name, "others")
			if r.drifted(cm.ID, 7) != others || snapshot.Tracked && !snapshot.InSync && r.Writing(cm.ID, 7) != others {
				t.Errorf("drift: %t, want %t", !others, others)
			}
			expect.False(t, r.Get(deploy.ID).OutOfSync, "the other object is out of sync")
			r.MarkInSync(mr1, sighting(cm, "u", "7", 1))
			expect.True(t, len(r.rares) == 0 && !r.Get(cm.ID).RetryPartial, "it is remembered")
		})
	}
}

// MR-30, MRX-5: two runs create an object one after the other, as somebody deletes it in between; the answer to the first comes last.
func TestMarkInSync_KeepsLaterProof(t *testing.T) {
	first, second := Observation{ID: cm.ID, UID: "1", ResourceVersion: "4"}, Observation{ID: cm.ID, UID: "2", ResourceVersion: "6"}
	for name, answers := range map[string][]Observation{"MR-30/in order": {first, second}, "MR-30/the first comes last": {second, first}} {
		r := newRecorder(map[Owner][]Ref{mr1: {cm}, mr2: {cm}})
		for _, answer := range answers {
			answer.Created = true
			r.MarkInSync(mr1, answer)
		}
		expect.True(t, r.isOurs(cm.ID, "2") && !r.isOurs(cm.ID, "1"), "%s: it is not known what was created", name)
	}
}

// MRO-2, MRX-5: what was given up is not ours, also if the answer to its creation comes later; what is created anew by that name is.
func TestTakenOver_OutlivesLateAnswers(t *testing.T) {
	r := newRecorder(map[Owner][]Ref{mr1: {cm}, mr2: {cm}})
	created := func(uid types.UID, version string) Observation {
		return Observation{ID: cm.ID, UID: uid, ResourceVersion: version, Created: true}
	}
	r.Observe(created("1", "4"))
	r.TakenOver(Owner{}, cm.ID, "1")
	r.Observe(created("1", "5"))
	r.MarkInSync(mr1, created("1", "4"))
	expect.False(t, r.isOurs(cm.ID, "1"), "what was given up is ours")
	r.observeGone(cm.ID, "1", "6")
	r.MarkInSync(mr1, created("2", "7"))
	r.MarkInSync(mr1, created("1", "4"))
	expect.True(t, r.isOurs(cm.ID, "2") && !r.isOurs(cm.ID, "1"), "what was created since is not ours")
	r.TakenOver(Owner{}, cm.ID, "1") // It was read before it went.
	expect.True(t, r.isOurs(cm.ID, "2"), "what was created since was given up with another one")
}

// A change is drift only if the object was compared with the same desired state before.
func TestTicket_DelaysNotices(t *testing.T) {
	verified := func(desired uint64) Observation {
		s := sighting(cm, "u", "5", 0)
		s.Desired = desired
		return s
	}
	for name, tc := range map[string]struct {
		do   func(*recorder)
		want bool
	}{
		"MRB-34/nothing is known":              {func(*recorder) {}, false},
		"MRB-34/a list did not have it":        {func(r *recorder) { r.list(nil, "4") }, false},
		"MRB-34/verified":                      {func(r *recorder) { r.MarkInSync(mr1, verified(1)) }, true},
		"MRB-34/changed since":                 {func(r *recorder) { r.MarkInSync(mr1, verified(1)); r.Observe(sighting(cm, "u", "6", 0)) }, true},
		"MRB-34/deleted since":                 {func(r *recorder) { r.MarkInSync(mr1, verified(1)); r.observeGone(cm.ID, "u", "6") }, true},
		"MRB-34/verified, with another state":  {func(r *recorder) { r.MarkInSync(mr1, verified(2)) }, false},
		"MRB-34/changed, with another desired": {func(r *recorder) { r.MarkInSync(mr1, verified(2)); r.Observe(sighting(cm, "u", "6", 0)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(map[Owner][]Ref{mr1: {cm}})
			tc.do(r)
			expect.Equal(t, r.Writing(cm.ID, 1), tc.want, "compared")
		})
	}
}

// A comparison finds out that the target was restored though its watch went on as if nothing had happened: the list covers the version that
// was known, and has an older one, or another object in the same one. News since the list was made are no such proof.
func TestListSession_ProvesRestore(t *testing.T) {
	for name, tc := range map[string]struct {
		known, listed, list string
		uid                 string
		proof               bool
	}{
		"MRB-47/the same":                        {known: "5", listed: "5", list: "9", uid: "u"},
		"MRB-47/a later one":                     {known: "5", listed: "6", list: "9", uid: "u"},
		"MRB-47/an older one":                    {known: "5", listed: "4", list: "9", uid: "u", proof: true},
		"MRB-47/an older one, of an old list":    {known: "5", listed: "4", list: "4", uid: "u", proof: true}, // The whole list is older than what was known.
		"MRB-47/written after the list was made": {known: "12", listed: "4", list: "9", uid: "u"},
		"MRB-47/another one in the same version": {known: "5", listed: "5", list: "5", uid: "other", proof: true},
		"MRB-47/a later one by the name":         {known: "5", listed: "6", list: "9", uid: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(map[Owner][]Ref{mr1: {cm}})
			late := tc.known == "12"
			verify := func() { r.MarkInSync(mr1, sighting(cm, "u", tc.known, 0)) }
			if !late {
				verify()
			}
			x := r.StartListSession(Audit, cm.GroupKind(), "", everything)
			if late {
				verify()
			}
			proof := ""
			r.Subscribe(Subscriber{Restored: func(p string) { proof = p }})
			x.At(tc.list)
			x.Observe(sighting(cm, tc.uid, tc.listed, 0))
			expect.Equal(t, proof != "", tc.proof, "a restore is proved by %q", proof)
		})
	}
}

// A comparison finds an object that is tracked as missing as of the version in which the list has it, as after a restore that no watch reported.
func TestListSession_FindsObjectDeletedInItsVersion(t *testing.T) {
	for version, behind := range map[string]bool{"5": false, "6": true, "7": true} {
		r := newRecorder(map[Owner][]Ref{mr1: {cm}})
		r.MarkInSync(mr1, sighting(cm, "u", "5", 0))
		r.observeGone(cm.ID, "u", "6")
		x := r.StartListSession(Audit, cm.GroupKind(), "6", everything)
		x.At("7")
		x.Observe(sighting(cm, "u", version, 0))
		differing := x.End().Differing
		expect.Equal(t, len(differing) > 0, behind, "version %s: missing is %v", version, differing)
		for _, difference := range differing {
			expect.True(t, r.Observe(difference) && r.Get(cm.ID).Present && !r.Observe(difference), "version %s: %+v", version, r.Get(cm.ID))
		}
	}
}

// TestTracker_OutOfSyncHasAnOwner holds for whatever two ManagedResources that have an object do and leave to each other: an object that is out of sync
// is to be checked by one of them, which was notified of that and of any later change.
func TestTracker_OutOfSyncHasAnOwner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorder(map[Owner][]Ref{mr1: {cm}})
		version := 100
		owner := rapid.SampledFrom([]Owner{mr1, mr2})
		next := func(t *rapid.T) Observation {
			version += rapid.IntRange(0, 1).Draw(t, "later")
			return sighting(cm, "u", fmt.Sprint(version), 0)
		}
		t.Repeat(map[string]func(*rapid.T){
			"it is tracked": func(t *rapid.T) { r.Track(owner.Draw(t, "owner"), []Ref{cm}) },
			"it is tracked no more": func(t *rapid.T) {
				if one := owner.Draw(t, "owner"); len(r.Progress(mr1).Refs)+len(r.Progress(mr2).Refs) > len(r.Progress(one).Refs) {
					r.Track(one, nil)
				}
			},
			"it is seen": func(t *rapid.T) { r.Observe(next(t)) },
			"it is gone": func(*rapid.T) { version++; r.observeGone(cm.ID, "u", fmt.Sprint(version)) },
			"it is verified": func(t *rapid.T) {
				if one := owner.Draw(t, "owner"); len(r.Progress(one).Refs) > 0 {
					r.MarkInSync(one, next(t))
				}
			},
			"it is kept by the other": func(t *rapid.T) { r.markKept(owner.Draw(t, "owner"), next(t)) },
			"": func(t *rapid.T) {
				must.False(t, r.Get(cm.ID).OutOfSync && len(r.Progress(mr1).OutOfSync)+len(r.Progress(mr2).OutOfSync) == 0,
					"it is out of sync, and no owner has to check it")
			},
		})
		if !r.Get(cm.ID).OutOfSync {
			r.drift = nil
			for range 2 { // Nobody has looked before the first.
				version++
				r.Observe(sighting(cm, "u", fmt.Sprint(version), 0))
			}
			expect.True(t, len(r.drift) != 0, "no subscriber is notified of a change")
		}
	})
}

// A hundred thousand objects have a record each, which the allocator rounds up to the next of its sizes: 192 bytes, then 208.
func TestRecord_FitsItsSizeClass(t *testing.T) {
	got := unsafe.Sizeof(record{})
	expect.True(t, got <= 192, "a record takes %d bytes", got)
}

// TestTracker_PanicUnderLock shows that a panic of code that the tracker calls releases its lock.
func TestTracker_PanicUnderLock(t *testing.T) {
	l := New()
	l.Track(mr1, []Ref{cm})
	l.Observe(Observation{ID: cm.ID, UID: "u", ResourceVersion: "1"})
	func() {
		defer func() {
			expect.True(t, recover() != nil, "MRC-12: no panic")
		}()
		l.KindEnded(cm.GroupKind(), func(Ref) bool { panic("on purpose") })
	}()
	released := make(chan struct{})
	go func() { l.Track(mr1, nil); close(released) }()
	select {
	case <-released:
	case <-time.After(10 * time.Second):
		t.Error("MRC-12: the lock is still held")
	}
}
