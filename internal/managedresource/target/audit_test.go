package target

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestAudit holds that what no watch told of is found by a list of metadata and put right, that what was told is not taken for
// missed, and that objects that nobody has on record are found by their origin.
func TestAudit(t *testing.T) {
	s, client := newServer(t)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	names := []string{"stays", "changes", "goes", "is replaced"}
	refs := make([]objects.Ref, 0, len(names))
	for _, name := range names {
		s.put(configMaps, "n", name, nil)
		refs = append(refs, refTo(configMaps, "n", name))
	}
	w.Track(owner, refs)
	eventually(t, "known", func() bool { return l.Progress(owner).AllKnown && w.Covered(refs[0]) })
	for _, ref := range refs {
		recorded := l.Get(ref.ID)
		l.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: recorded.UID, ResourceVersion: recorded.ResourceVersion})
	}
	s.mu.Lock()
	s.muted = true
	s.mu.Unlock()
	s.put(configMaps, "n", "changes", map[string]any{"data": map[string]any{"a": "b"}})
	s.delete(configMaps, "n", "goes")
	s.delete(configMaps, "n", "is replaced")
	s.put(configMaps, "n", "is replaced", nil)
	lost, copied := s.put(configMaps, "n", "lost", nil), s.put(configMaps, "n", "copied", nil)
	kept, forged := s.put(configMaps, "n", "kept", nil), s.put(configMaps, "n", "forged", nil)
	s.mu.Lock()
	carry := map[string]any{resourcesv1alpha1.AnnotationOrigin: "garden:n/mr"}
	wrote := func(manager string) []any {
		return []any{map[string]any{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + resourcesv1alpha1.AnnotationOrigin: map[string]any{}}}}}}
	}
	lost["metadata"].(map[string]any)["annotations"] = carry
	lost["metadata"].(map[string]any)["managedFields"] = wrote(client.Manager())
	kept["metadata"].(map[string]any)["annotations"] = map[string]any{resourcesv1alpha1.AnnotationOrigin: "garden:n/mr", resourcesv1alpha1.AnnotationKeepObject: "true"}
	kept["metadata"].(map[string]any)["managedFields"] = wrote(client.Manager())
	forged["metadata"].(map[string]any)["annotations"] = map[string]any{resourcesv1alpha1.AnnotationOrigin: "garden:n/" + strings.Repeat("x", longestOrigin)}
	forged["metadata"].(map[string]any)["managedFields"] = wrote(client.Manager())
	copied["metadata"].(map[string]any)["annotations"] = carry
	copied["metadata"].(map[string]any)["managedFields"] = wrote("kube-controller-manager")
	s.mu.Unlock()

	kind := w.scopeOf(refs[0])
	w.mu.Lock()
	a := w.active[kind]
	w.mu.Unlock()
	found := &comparison{watches: w, scope: kind, active: a}
	err := found.list(t.Context())
	must.True(t, err == nil && len(found.audited.Differing) == 3, "got %+v, %v", found, err)
	differing, orphans := found.audited.Differing, found.orphans
	expect.True(t, len(orphans) == 1 && orphans[0].ID.Name == "lost" && orphans[0].Origin == "garden:n/mr",
		"MRB-54: got %+v", orphans)
	expect.Equal(t, len(l.Progress(owner).OutOfSync), 0, "objects are out of sync before the watch had its time")
	s.mu.Lock()
	s.muted = false
	s.mu.Unlock()
	lists := s.count("list")
	found.complete(differing)
	n := len(l.Progress(owner).OutOfSync)
	expect.True(t, n == 3 && !l.Get(refs[2].ID).Present, "%d objects are out of sync, want 3", n)
	for _, difference := range differing {
		expect.False(t, l.Observe(difference), "%s is taken for missed twice", difference.ID.Name)
	}
	eventually(t, "watched anew", func() bool { return s.count("list") > lists && w.Covered(refs[0]) })
}

// TestAuditIsSpread holds that an audit waits before its first list, and asks nothing while nothing is in use.
func TestAuditIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatches(nil, objects.New(), WatchOptions{Log: logr.Discard()})
		audits := 0
		ctx, cancel := context.WithTimeout(t.Context(), 240*time.Hour)
		defer cancel()
		err := w.Audit(ctx, 24*time.Hour, Orphans{
			Found: func(context.Context, []Orphan) { t.Error("there is nothing") },
			Ended: func(context.Context) { audits++ },
		})
		expect.Succeed(t, err)
		expect.True(t, audits != 0, "no audit has ended")
	})
}

// MRB-54: forged orphans take a bounded amount of memory.
func TestOrphansAreBounded(t *testing.T) {
	s, client := newServer(t)
	w := started(t, client, objects.New())
	run(t, w)
	s.put(configMaps, "n", "known", nil)
	ref := refTo(configMaps, "n", "known")
	w.Track(owner, []objects.Ref{ref})
	eventually(t, "covered", func() bool { return w.Covered(ref) })
	for i := range mostOrphans + 5 {
		forged := s.put(configMaps, "n", fmt.Sprint("forged-", i), nil)
		s.mu.Lock()
		forged["metadata"].(map[string]any)["annotations"] = map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/mr"}
		forged["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": client.Manager(), "operation": "Update", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + resourcesv1alpha1.AnnotationOrigin: map[string]any{}}}}}}
		s.mu.Unlock()
	}
	kind := w.scopeOf(ref)
	w.mu.Lock()
	a := w.active[kind]
	w.mu.Unlock()
	found := &comparison{watches: w, scope: kind, active: a}
	err := found.list(t.Context())
	expect.True(t, err == nil && len(found.orphans) == mostOrphans, "MRB-54: %d orphans, %v", len(found.orphans), err)
}

// MR-30: a healthy object without the label that is created only once is read by audits and not in between; it counts
// as present until a read finds that it is gone.
func TestAudit_ReadsObjectsWithoutLabel(t *testing.T) {
	r := newRollout(t, 0)
	r.follow(t)
	r.putAs(configMaps, "labelled", map[string]any{"labels": managedLabel}, nil)
	r.putAs(configMaps, "once", nil, nil)
	labelled, ref := refTo(configMaps, "n", "labelled"), refTo(configMaps, "n", "once")
	entry := entryOf(ref)
	entry.Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	r.Watches.Track(owner, []objects.Ref{labelled, ref})
	eventually(t, "listed", func() bool { return r.Covered(ref) && r.Get(ref.ID).MissingFromList })

	assess := func() (healthy, covered bool, requests int) {
		before := r.count("get")
		assessment, err := r.assessor.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entry})
		must.Succeed(t, err)
		return assessment.Health.Status == resourcesv1alpha1.ConditionTrue, assessment.Covered, r.count("get") - before
	}
	audit := func() {
		err := r.auditScope(t.Context(), r.scopeOf(ref), func(context.Context, []Orphan) {})
		if err != nil {
			t.Log(err)
		}
	}
	if healthy, _, requests := assess(); !healthy || requests != 1 {
		t.Errorf("no list has it, so that it is read once: healthy %t, %d requests", healthy, requests)
	}
	r.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: r.Get(ref.ID).UID, ResourceVersion: r.Get(ref.ID).ResourceVersion, Unlabelled: true})
	rests := func(when string) {
		if healthy, covered, requests := assess(); !healthy || !covered || requests != 0 {
			t.Errorf("%s: healthy %t, covered %t, %d requests", when, healthy, covered, requests)
		}
	}
	rests("it was read")
	r.refuse("get", true)
	audit()
	rests("the audit could not read it")
	r.refuse("get", false)
	audit()
	rests("the audit has read it")
	r.delete(configMaps, "n", "once")
	rests("it was deleted since")
	audit()
	recorded := r.Get(ref.ID)
	expect.True(t, !recorded.Present && recorded.OutOfSync, "an audit reports that it is gone: got %+v", recorded)
}
