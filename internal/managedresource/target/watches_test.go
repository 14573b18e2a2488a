package target

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var owner = objects.Owner{Namespace: "n", Name: "mr"}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		must.False(t, time.Now().After(deadline), "%s: not within a minute", what)
	}
}

// TestCoverage holds that a watch covers only while it would tell: its end is the error, whatever it is, and a complete view
// begins it anew.
func TestCoverage(t *testing.T) {
	for name, broken := range map[string]struct{ begin, end func(*server) }{
		"forbidden": {
			func(s *server) { s.refuse("list", true); s.refuse("watch", true) },
			func(s *server) { s.refuse("list", false); s.refuse("watch", false) },
		},
		"the version is withdrawn": {
			func(s *server) { s.withdraw(widgets) },
			func(s *server) { s.serve(widgets, "widgets", true) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t)
			l := objects.New()
			w := started(t, client, l)
			run(t, w)
			s.put(widgets, "n", "w", nil)
			ref := refTo(widgets, "n", "w")
			w.Track(owner, []objects.Ref{ref})
			eventually(t, "covered", func() bool { return w.Covered(ref) })
			broken.begin(s)
			eventually(t, "not covered", func() bool { return !w.Covered(ref) })
			broken.end(s)
			w.Served(ref)
			eventually(t, "covered again", func() bool { w.Served(ref); return w.Covered(ref) })
		})
	}
}

// TestRestore holds that a restore of etcd is reported, and that what is gone is known to be gone (MRB-47).
func TestRestore(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	restored := make(chan string, 100)
	l.Subscribe(objects.Subscriber{Restored: func(proof string) { restored <- proof }})
	w := started(t, client, l)
	run(t, w)
	s.put(configMaps, "n", "stays", map[string]any{"data": map[string]any{"a": "1"}})
	before := s.version
	s.put(configMaps, "n", "stays", map[string]any{"data": map[string]any{"a": "2"}})
	s.put(configMaps, "n", "goes", nil)
	stays, goes := refTo(configMaps, "n", "stays"), refTo(configMaps, "n", "goes")
	w.Track(owner, []objects.Ref{stays, goes})
	eventually(t, "known", func() bool { return l.Progress(owner).AllKnown && w.Covered(stays) })
	for _, ref := range []objects.Ref{stays, goes} {
		l.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: l.Get(ref.ID).UID, ResourceVersion: l.Get(ref.ID).ResourceVersion})
	}
	s.awaitWatches(t, 1)
	s.mu.Lock()
	delete(s.kinds[configMaps].objects, "n/goes")
	s.kinds[configMaps].objects["n/stays"] = withVersion(s.kinds[configMaps].objects["n/stays"], before)
	s.mu.Unlock()
	s.restore(before)
	eventually(t, "both are out of sync, one is missing", func() bool {
		return len(l.Progress(owner).OutOfSync) == 2 && !l.Get(goes.ID).Present && l.Get(stays.ID).ResourceVersion == fmt.Sprint(before)
	})
	expect.True(t, len(restored) != 0, "MRB-47: the restore is not reported")
}

// TestMappingEnds holds that a kind that comes back with another scope is used as it is then.
func TestMappingEnds(t *testing.T) {
	s, client := newServer(t)
	s.put(widgets, "n", "w", nil)
	must.Succeed(t, expect.ErrorOf(client.Get(t.Context(), widgets, "n", "w")))
	s.withdraw(widgets)
	_, err := client.Get(t.Context(), widgets, "n", "w")
	expect.True(t, Gone(err), "the kind is not served: got %v", err)
	s.serve(widgets, "widgets", false)
	s.put(widgets, "", "w", nil)
	expect.Succeed(t, expect.ErrorOf(client.Get(t.Context(), widgets, "", "w")), "with cluster scope")
	if _, err := client.Get(t.Context(), widgets, "n", "w"); !Gone(err) {
		t.Errorf("the object that was in a namespace can't be there any more: got %v", err)
	}
	// The same while the mapping is in use: it ends with the first answer that tells.
	s.serve(widgets, "gadgets", false)
	s.put(widgets, "", "w", nil)
	expect.Succeed(t, expect.ErrorOf(client.Get(t.Context(), widgets, "", "w")), "at another path")
	if scope, err := client.Scope(t.Context(), widgets); err != nil || scope != plan.ScopeCluster {
		t.Errorf("got %v, %v", scope, err)
	}
}

// TestScopeAtTheWrite holds that no object is written elsewhere than it is said to be, whatever was supposed of its kind before.
func TestScopeAtTheWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace  string
		namespaced bool
		want       error
	}{
		"in a namespace":                      {"default", true, nil},
		"in no namespace":                     {"", false, nil},
		"its kind has no namespaces any more": {"default", false, ErrMisplaced},
		"its kind has namespaces by now":      {"", true, ErrMisplaced},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t)
			s.serve(widgets, "widgets", tc.namespace != "")
			must.Succeed(t, expect.ErrorOf(client.Scope(t.Context(), widgets)))
			s.serve(widgets, "widgets", tc.namespaced)
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w"}}}
			object.SetGroupVersionKind(widgets)
			if tc.namespace != "" {
				object.SetNamespace(tc.namespace)
			}
			_, err := client.Create(t.Context(), object, View{})
			expect.ErrorIs(t, err, tc.want)
			expect.Equal(t, len(s.kinds[widgets].objects) > 0, tc.want == nil, "objects were written")
		})
	}
}
