package target

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// TestRestoreIsOfAllKinds holds that the proof for one object has all kinds listed from nothing, and what they have looked at anew.
func TestRestoreIsOfAllKinds(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	s.put(configMaps, "n", "proves", nil)
	s.put(widgets, "n", "other", map[string]any{"spec": map[string]any{"a": "1"}})
	proves, other := refTo(configMaps, "n", "proves"), refTo(widgets, "n", "other")
	w.Track(owner, []objects.Ref{proves, other})
	for _, ref := range []objects.Ref{proves, other} {
		eventually(t, "known", func() bool { return l.Get(ref.ID).Known && w.Covered(ref) })
		l.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: l.Get(ref.ID).UID, ResourceVersion: l.Get(ref.ID).ResourceVersion})
	}
	before := s.count("list")
	l.ObservePresent(objects.Observation{ID: proves.ID, UID: "another", ResourceVersion: "1", Since: l.Get(proves.ID).Revision})
	eventually(t, "both are listed", func() bool { return s.count("list") == before+2 && w.Covered(proves) && w.Covered(other) })
	eventually(t, "both are in doubt", func() bool { return len(l.Progress(owner).OutOfSync) == 2 && l.Get(other.ID).ResourceVersion != "" })
	if _, err := readFrom(t.Context(), w, other); err != nil || s.count("get") != 0 {
		t.Errorf("%d single reads, %v: what is turned back is compared from a list", s.count("get"), err)
	}
}

// TestListsOfAnEraComeAfterItsBegin holds that what is known is forgotten after what followed a scope is heeded no more, and before the scope is
// followed anew: the list would be forgotten, too.
func TestListsOfAnEraComeAfterItsBegin(t *testing.T) {
	l := objects.New()
	w := NewWatches(nil, l, WatchOptions{Log: logr.Discard()})
	ref := refTo(configMaps, "n", "a")
	a := newActiveWatch()
	w.active[w.scopeOf(ref)] = a
	l.Track(owner, []objects.Ref{ref})
	l.ObservePresent(objects.Observation{ID: ref.ID, UID: "u", ResourceVersion: "7"})
	begun := false
	former := a.follows(func() {
		begun = true
		if known := l.Get(ref.ID).ResourceVersion; known != "" {
			t.Errorf("followed anew while resource version %s of the former era is known", known)
		}
	})
	l.Subscribe(objects.Subscriber{Drift: func(objects.Owner, objects.ID) {
		if former.isCurrent() {
			t.Error("the former era is heeded after its end")
		}
	}})
	w.renew(nil)
	if !begun {
		t.Error("not followed anew")
	}
}

// TestErasAreBounded holds that who counts backwards all the time costs a list of each kind a minute, and then less.
func TestErasAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e eras
		var began atomic.Int32
		for range 3 * 3600 {
			if e.prove(func() { began.Add(1) }) {
				began.Add(1)
			}
			time.Sleep(time.Second)
		}
		if n := began.Load(); n < 6 || n > 9 {
			t.Errorf("%d eras in three hours", n)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		began.Store(0)
		if !e.prove(func() {}) {
			t.Error("after a time without proofs, one is not heeded at once")
		}
		if e.prove(func() { began.Add(1) }) {
			t.Error("the second proof is heeded at once")
		}
		time.Sleep(eraPause + time.Second)
		synctest.Wait()
		if n := began.Load(); n != 1 {
			t.Errorf("%d eras began a minute later", n)
		}
	})
}
