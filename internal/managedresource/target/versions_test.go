package target

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/must"
)

var (
	vpaV1   = schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}
	vpaBeta = vpaV1.GroupKind().WithVersion("v1beta2") // Not checked (MRH-8).
	// unhealthyAutoscaler is its content.
	unhealthyAutoscaler = map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "ConfigUnsupported", "status": "True"}}}}
)

// MRB-38: an object without the label is in no list that goes by the label, and health reads it before it says that it is missing. That it is there, in
// an older version than the list's, is no proof that the target was restored.
func TestReadOfAnUnlabelledObjectIsNoRestore(t *testing.T) {
	s, client := newServer(t)
	s.selective = true
	foreign := s.put(configMaps, "n", "foreign", nil)
	s.mu.Lock()
	delete(foreign["metadata"].(map[string]any), "labels") // Somebody took the label off, or it is still to be taken over, and the write is refused.
	s.mu.Unlock()
	s.put(configMaps, "n", "other", nil)
	s.put(widgets, "n", "w", nil)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	mine, other, widget := refTo(configMaps, "n", "foreign"), refTo(configMaps, "n", "other"), refTo(widgets, "n", "w")
	second := objects.Owner{Namespace: "n", Name: "second"}
	w.Track(owner, []objects.Ref{mine})
	w.Track(second, []objects.Ref{other, widget})
	eventually(t, "covered", func() bool {
		return w.Covered(mine) && w.Covered(widget) && l.Progress(owner).AllKnown && l.Progress(second).AllKnown
	})
	verify(l, second, other)
	verify(l, second, widget)
	lists, proof := s.count("list"), ""
	l.Subscribe(objects.Subscriber{Restored: func(p string) { proof = p }})
	a := NewAssessor(client, l, w, clock.RealClock{})
	for range 3 {
		assessment, err := a.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(mine)})
		must.True(t, err == nil && assessment.Health.Status == "True", "it is there, and healthy: %+v, %v", assessment, err)
		if proof != "" || len(l.Progress(second).OutOfSync) > 0 || s.count("list") > lists {
			t.Fatalf("taken for a restore of the target: %d lists, out of sync of another ManagedResource: %v", s.count("list")-lists, l.Progress(second).OutOfSync)
		}
	}
}

// Promise: drift is put right, also if ManagedResources have an object in different versions: each list tells those of its version what is gone.
func TestListTellsInEachVersion(t *testing.T) {
	for name, tc := range map[string]struct{ shared, letGo, served bool }{
		"not shared":                                  {false, false, true},
		"shared, in another version":                  {true, false, true},
		"shared, in a version that is not served":     {true, false, false},
		"shared a while ago, in a version not served": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t)
			if tc.served {
				s.serve(oldWidgets, "widgets", true)
			}
			l := objects.New()
			w := started(t, client, l)
			run(t, w)
			s.put(widgets, "n", "a", nil)
			wants, another := objects.Owner{Namespace: "n", Name: "wants"}, objects.Owner{Namespace: "n", Name: "another"}
			ref, refOld := refTo(widgets, "n", "a"), refTo(oldWidgets, "n", "a")
			w.Track(wants, []objects.Ref{ref})
			eventually(t, "covered", func() bool { return l.Progress(wants).AllKnown && w.Covered(ref) })
			if tc.served {
				content := s.kinds[widgets].objects["n/a"]
				s.mu.Lock()
				s.kinds[oldWidgets].objects["n/a"] = content
				s.mu.Unlock()
			}
			if tc.shared {
				w.Track(another, []objects.Ref{refOld})
				if tc.served {
					eventually(t, "covered, too", func() bool { return w.Covered(refOld) })
				}
			}
			verify(l, wants, ref)
			if tc.letGo {
				w.Track(another, nil)
			}
			// A gap, in which somebody deletes the object.
			end := s.gap(t, func() bool { return !w.Covered(ref) }, func() {
				s.delete(widgets, "n", "a")
				if tc.served {
					s.mu.Lock()
					delete(s.kinds[oldWidgets].objects, "n/a")
					s.mu.Unlock()
				}
			})
			var other *activeWatch
			if tc.shared && tc.served {
				w.mu.Lock()
				other = w.active[w.scopeOf(refOld)]
				w.mu.Unlock()
				other.listing <- struct{}{} // It is in its back-off.
			}
			end()
			eventually(t, "covered again", func() bool { return w.Covered(ref) })
			w.Track(wants, []objects.Ref{ref}) // As each run does; it passes by what is verified and covered.
			if other != nil {
				<-other.listing
				eventually(t, "covered in the other version", func() bool { return other.covers() })
			}
			w.Track(wants, []objects.Ref{ref})
			if f := l.Get(ref.ID); f.Present || len(l.Progress(wants).OutOfSync) == 0 {
				t.Errorf("it is gone, all lists have told so, and it is verified (%t), covered (%t), and out of sync for (%v)", inSync(l, ref.ID, 1), w.Covered(ref), l.Progress(wants).OutOfSync)
			}
		})
	}
}

// MRH-8: what another ManagedResource has in another version, which is not checked, is judged as before where it is.
func TestHealthStaysForWhoHasTheCheckedVersion(t *testing.T) {
	s, client := newServer(t)
	s.serve(vpaV1, "verticalpodautoscalers", true)
	s.put(vpaV1, "n", "vpa", unhealthyAutoscaler)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	a := NewAssessor(client, l, w, clock.RealClock{})
	ref := entryOf(refTo(vpaV1, "n", "vpa"))
	w.Track(owner, []objects.Ref{objects.RefOf(&ref)})
	eventually(t, "covered", func() bool { return w.Covered(objects.RefOf(&ref)) && l.Progress(owner).AllKnown })
	object, err := client.Get(t.Context(), vpaV1, "n", "vpa")
	must.Succeed(t, err)
	l.MarkInSync(owner, w.View().Observation(object))
	judge := func(when string) {
		t.Helper()
		assessment, err := a.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{ref})
		must.Succeed(t, err)
		if got := assessment.Health.Status; got != "False" {
			t.Errorf("%s: ResourcesHealthy is %s of an unhealthy object, and that is covered (%t)", when, got, assessment.Covered)
		}
	}
	judge("before")
	w.Track(objects.Owner{Name: "another"}, []objects.Ref{refTo(vpaBeta, "n", "vpa")})
	judge("another one tracks it in another version")
	w.Track(owner, []objects.Ref{objects.RefOf(&ref)}) // The next run, which passes it by.
	judge("after the next run")
	w.Track(objects.Owner{Name: "another"}, nil)
	w.Track(owner, []objects.Ref{objects.RefOf(&ref)})
	judge("another one has it no more")
}

// MRH-8: a ManagedResource whose manifest has another version of a kind than its inventory tracks both while it runs, and the new one at its end.
func TestHealthStaysWhenAManifestChangesItsVersion(t *testing.T) {
	s, client := newServer(t)
	s.serve(vpaV1, "verticalpodautoscalers", true)
	s.serve(vpaBeta, "verticalpodautoscalers", true)
	s.put(vpaV1, "n", "vpa", unhealthyAutoscaler)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	a := NewAssessor(client, l, w, clock.RealClock{})
	ref := entryOf(refTo(vpaV1, "n", "vpa"))
	w.Track(objects.Owner{Name: "another"}, []objects.Ref{refTo(vpaV1, "n", "another")}) // The kind is in use in the new version.
	w.Track(owner, []objects.Ref{refTo(vpaBeta, "n", "vpa")})
	eventually(t, "covered", func() bool { return w.Covered(objects.RefOf(&ref)) && w.Covered(refTo(vpaBeta, "n", "vpa")) })
	w.Track(owner, []objects.Ref{objects.RefOf(&ref), refTo(vpaBeta, "n", "vpa")})
	object, err := client.Get(t.Context(), vpaV1, "n", "vpa")
	must.Succeed(t, err)
	l.MarkInSync(owner, w.View().Observation(object))
	w.Track(owner, []objects.Ref{objects.RefOf(&ref)})
	assessment, err := a.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{ref})
	must.Succeed(t, err)
	if got := assessment.Health.Status; got != "False" {
		t.Errorf("ResourcesHealthy is %s of an unhealthy object, and that is covered (%t)", got, assessment.Covered)
	}
}

// MRH-8: what is on record in a version that is not checked says nothing of one that is, though a watch covers that: it is read.
func TestHealthOfAnotherVersionIsNone(t *testing.T) {
	s, client := newServer(t)
	s.serve(vpaV1, "verticalpodautoscalers", true)
	s.serve(vpaBeta, "verticalpodautoscalers", true)
	s.put(vpaBeta, "n", "vpa", unhealthyAutoscaler)
	s.put(vpaV1, "n", "vpa", unhealthyAutoscaler) // Here each version is an object of its own.
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	a := NewAssessor(client, l, w, clock.RealClock{})
	now, old := refTo(vpaV1, "n", "vpa"), refTo(vpaBeta, "n", "vpa")
	w.Track(objects.Owner{Name: "neighbour"}, []objects.Ref{refTo(vpaV1, "n", "neighbour")})
	eventually(t, "the version that is checked is covered", func() bool { return w.Covered(now) })
	w.Track(objects.Owner{Name: "another"}, []objects.Ref{old})
	eventually(t, "it is on record in the other version", func() bool { return w.Covered(old) && l.Get(old.ID).Present })
	w.Track(owner, []objects.Ref{now})
	assessment, err := a.Assess(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(now)})
	if err != nil || assessment.Health.Status != "False" {
		t.Errorf("ResourcesHealthy is %s of an unhealthy object, and that is covered (%t): %v", assessment.Health.Status, assessment.Covered, err)
	}
	reads := s.count("get")
	if _, err := a.Assess(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(now)}); err != nil || s.count("get") > reads {
		t.Errorf("it is read again, though it is known by now: %v", err)
	}
}
