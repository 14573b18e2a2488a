package target

import (
	"testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/must"
)

// MRB-47: a restore of etcd in the target is reported once a list shows an older version than was known. The store has
// caught up when the list is to be had again, so that only one object of it proves the restore.
func TestRestoreProvenByOneObject(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	restored := make(chan string, 100)
	l.Subscribe(objects.Subscriber{Restored: func(proof string) { restored <- proof }})
	w := started(t, client, l)
	run(t, w)
	widget := func(name, spec string, generation int) map[string]any {
		object := s.put(widgets, "n", name, map[string]any{"spec": map[string]any{"a": spec}})
		s.mu.Lock()
		defer s.mu.Unlock()
		object["metadata"].(map[string]any)["generation"] = generation
		return object
	}
	before := widget("proof", "1", 1) // The backup has this, and "a" as it was before our change.
	backup := s.version
	s.put(configMaps, "n", "other", nil)
	widget("proof", "2", 2)
	widget("a", "right", 2)
	proof, a, other := refTo(widgets, "n", "proof"), refTo(widgets, "n", "a"), refTo(configMaps, "n", "other")
	w.Track(owner, []objects.Ref{proof, a, other})
	for _, ref := range []objects.Ref{proof, a, other} {
		eventually(t, "known", func() bool { return l.Get(ref.ID).Present && w.Covered(ref) })
		f := l.Get(ref.ID)
		object, err := client.Get(t.Context(), ref.GVK(), "n", ref.Name)
		must.Succeed(t, err)
		x := w.View().Observation(object)
		x.Desired, x.Since = 1, f.Revision
		l.MarkInSync(owner, x)
	}
	known := s.version
	s.refuse("watch", true)
	s.refuse("list", true)
	eventually(t, "not covered", func() bool { return !w.Covered(a) })
	s.restore(backup)
	s.mu.Lock()
	s.kinds[widgets].objects["n/proof"] = before
	s.mu.Unlock()
	for s.version < known+5 {
		s.put(configMaps, "n", "busy", nil)
	}
	s.refuse("list", false)
	s.refuse("watch", false)
	eventually(t, "the restore is reported", func() bool { return len(restored) > 0 })
}

// MRT-14: an object without the label, which no watch sees, is looked at each period until it has the label again.
func TestCoveredWithoutTheLabel(t *testing.T) {
	r := newRollout(t, 0)
	r.follow(t)
	ref := refTo(deploymentKind, "n", "d")
	verify(r.Tracker, owner, ref)
	// In a gap of the watch.
	r.refuse("watch", true)
	r.refuse("list", true)
	eventually(t, "not covered", func() bool { return !r.Covered(ref) })
	change := func(available string) {
		r.putAs(deploymentKind, "d", map[string]any{"labels": theirs, "generation": 1}, map[string]any{
			"spec": map[string]any{"replicas": 0, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}},
			"status": map[string]any{"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Available", "status": available},
				map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}}},
		})
	}
	change("True")
	r.put(configMaps, "n", "x", nil)
	r.refuse("watch", false)
	r.refuse("list", false)
	eventually(t, "covered", func() bool { return r.Covered(ref) })
	assessment, err := r.assessor.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(ref)})
	must.True(t, err == nil && !assessment.Problem, "%+v %v", assessment, err)
	if assessment.Covered {
		t.Errorf("it says that watches tell of each change: %+v", r.Get(ref.ID))
	}
}

// MRP-10: an object without the label, whose repair is delayed, is read for ResourcesProgressing as it is for ResourcesHealthy.
func TestProgressingWithoutTheLabel(t *testing.T) {
	r := newRollout(t, 1)
	r.follow(t)
	ref := refTo(deploymentKind, "n", "d")
	verify(r.Tracker, owner, ref)
	r.refuse("watch", true)
	r.refuse("list", true)
	eventually(t, "not covered", func() bool { return !r.Covered(ref) })
	// Somebody takes the label off and changes the image: the Deployment is being rolled out.
	r.putAs(deploymentKind, "d", map[string]any{"labels": theirs, "generation": 2}, map[string]any{
		"spec": map[string]any{"replicas": 1, "selector": map[string]any{"matchLabels": map[string]any{"app": "d"}}},
		"status": map[string]any{"observedGeneration": 2, "conditions": []any{map[string]any{"type": "Available", "status": "True"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "is progressing"}}},
	})
	r.put(configMaps, "n", "x", nil)
	r.refuse("watch", false)
	r.refuse("list", false)
	eventually(t, "covered", func() bool { return r.Covered(ref) })
	for range 2 {
		health, err := r.assessor.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(ref)})
		must.True(t, err == nil && health.Health.Status == resourcesv1alpha1.ConditionTrue,
			"it is there, and healthy: %+v %v", health, err)
		if got := r.progressing(t); got != "True" {
			t.Errorf("it was just read, and is being rolled out; Progressing is %s, and on record it is %+v", got, r.Get(ref.ID))
		}
	}
}

// Promise: drift is put right. Two ManagedResources have an object in two versions, and it is deleted in a gap of the watch
// of one of them.
func TestDeletedInAGapOfOneVersion(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	s.put(widgets, "n", "a", nil)
	wants, once := objects.Owner{Namespace: "n", Name: "wants"}, objects.Owner{Namespace: "n", Name: "once"}
	ref, refOld := refTo(widgets, "n", "a"), refTo(oldWidgets, "n", "a")
	w.Track(wants, []objects.Ref{ref})
	w.Track(once, []objects.Ref{refOld})
	eventually(t, "covered", func() bool { return l.Progress(wants).AllKnown && w.Covered(ref) })
	verify(l, wants, ref)
	end := s.gap(t, func() bool { return !w.Covered(ref) }, func() { s.delete(widgets, "n", "a") })
	end()
	eventually(t, "covered again", func() bool { return w.Covered(ref) })
	if inSync(l, ref.ID, 1) || len(l.Progress(wants).OutOfSync) == 0 {
		t.Errorf("it is gone; the list since told nobody: verified %t, covered %t, out of sync %v", inSync(l, ref.ID, 1), w.Covered(ref), l.Progress(wants).OutOfSync)
	}
}
