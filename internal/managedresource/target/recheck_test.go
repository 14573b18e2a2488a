package target

import (
	"testing"
	"time"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// TestRecheck: what happened while a watch was away is found although the watch is resumed without an error (MRB-47).
func TestRecheck(t *testing.T) {
	for name, interrupt := range map[string]func(*server){
		"MRB-47/etcd was restored, and the revision of the watch is still to come": func(s *server) {
			s.put(configMaps, "n", "changes", map[string]any{"data": map[string]any{"a": "future"}})
			s.restore(s.version - 2)
		},
		"MRB-47/etcd was restored, and the revision of the watch has passed": func(s *server) {
			s.restore(s.version - 1)
			for range 10 {
				s.put(widgets, "n", "another", nil)
			}
		},
		"MRB-47/events are lost while the watch is resumed": (*server).cut,
		"MRB-47/events are lost, and the first list is that of a store which lags": func(s *server) {
			s.mu.Lock()
			s.listsBehind = 1
			s.mu.Unlock()
			s.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, client := newServer(t)
			l := objects.New()
			w := started(t, client, l)
			run(t, w)
			changes, goes := refTo(configMaps, "n", "changes"), refTo(configMaps, "n", "goes")
			s.put(configMaps, "n", "changes", map[string]any{"data": map[string]any{"a": "1"}})
			s.put(configMaps, "n", "goes", nil)
			w.Track(owner, []objects.Ref{changes, goes})
			eventually(t, "known", func() bool { return l.Progress(owner).AllKnown && w.Covered(changes) })
			verify(l, owner, changes)
			verify(l, owner, goes)
			end := s.gap(t, func() bool { return !w.Covered(changes) }, func() {
				s.put(configMaps, "n", "changes", map[string]any{"data": map[string]any{"a": "2"}})
				s.delete(configMaps, "n", "goes")
				interrupt(s)
			})
			s.mu.Lock()
			s.compacted = 0
			s.mu.Unlock()
			end()
			eventually(t, "both are in doubt", func() bool { return len(l.Progress(owner).OutOfSync) == 2 && !l.Get(goes.ID).Present })
		})
	}
}

// TestWatchesAreRecheckedOnce: a watch whose predecessor lasted until its timeout is not rechecked, and a watch that lags is rechecked less and less often
// (MRB-47).
func TestWatchesAreRecheckedOnce(t *testing.T) {
	a := newActiveWatch()
	f := a.follows(func() {})
	f.listed("5")
	doubtful, ended := f.resumed()
	if !doubtful {
		t.Error("MRB-47: the first watch after a list is not rechecked")
	}
	ended(true)
	if doubtful, ended = f.resumed(); doubtful {
		t.Error("MRB-47: a watch that follows a timeout is rechecked")
	}
	ended(false)
	if doubtful, _ = f.resumed(); !doubtful {
		t.Error("MRB-47: a watch whose predecessor broke is not rechecked")
	}
	var total time.Duration
	for range 10 {
		total += a.nextRecheck()
		a.rechecked(false)
	}
	if longest := a.nextRecheck(); longest+auditGrace >= time.Minute || total < 4*time.Minute {
		t.Errorf("ten rechecks take %s, and the next pause is %s", total, longest)
	}
	if a.rechecked(true); a.nextRecheck() != recheckAfter {
		t.Error("a recheck that finds nothing does not end the long pauses")
	}
}
