package target

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRB-40: an object that somebody replaced by one without the label is counted as one whose end no watch will tell,
// until its end is found.
func TestUnwatchedObjectsAreCounted(t *testing.T) {
	r := newRollout(t, 0)
	r.follow(t)
	ref := refTo(deploymentKind, "n", "d")
	verify(r.Tracker, owner, ref)
	assess := func() Assessment {
		t.Helper()
		assessment, err := r.assessor.Confirm(t.Context(), []resourcesv1alpha1.ObjectReference{entryOf(ref)})
		must.Succeed(t, err)
		return assessment
	}
	got := assess()
	must.True(t, !got.Problem && got.UnlabelledLive == 0, "it is there, and a watch sees it: %+v", got)
	r.takeLabelOff()
	eventually(t, "the watch has told", func() bool { return !r.Get(ref.ID).Present })
	for range 2 {
		got := assess()
		must.True(t, !got.Problem && got.UnlabelledLive == 1, "it is there, and no watch sees it: %+v", got)
	}
	r.server.mu.Lock()
	delete(r.kinds[deploymentKind].objects, "n/d") // No watch tells.
	r.server.mu.Unlock()
	if got := assess(); !got.Problem || got.UnlabelledLive != 0 {
		t.Errorf("it is gone: %+v", got)
	}
}

// MRB-40: of many missing objects as many are read once more as the condition names; what the watches told of the
// others counts.
func TestFewMissingObjectsAreConfirmed(t *testing.T) {
	const many = 5 * namedProblems
	s, client := newServer(t)
	s.serve(configMaps, "configmaps", true)
	l := objects.New()
	w := started(t, client, l)
	run(t, w)
	var entries []resourcesv1alpha1.ObjectReference
	var refs []objects.Ref
	for i := range many {
		ref := refTo(configMaps, "n", string(rune('A'+i)))
		refs = append(refs, ref)
		entries = append(entries, entryOf(ref))
		s.put(configMaps, "n", ref.Name, nil)
	}
	w.Track(owner, refs)
	eventually(t, "all are known", func() bool { return w.Covered(refs[0]) && l.Progress(owner).AllKnown })
	for _, ref := range refs {
		verify(l, owner, ref)
		l.Observe(objects.Observation{ID: ref.ID, ResourceVersion: "1000000", Gone: true})
	}
	s.mu.Lock()
	clear(s.kinds[configMaps].objects)
	s.mu.Unlock()
	before := s.count("get")
	assessor := NewAssessor(client, l, w, clocktesting.NewFakePassiveClock(time.Now()))
	assessment, err := assessor.Confirm(t.Context(), entries)
	must.True(t, err == nil && assessment.Problem && assessment.Health.Reason == "ConfigMapMissing",
		"%+v, %v", assessment, err)
	reads := s.count("get") - before
	expect.True(t, reads <= namedProblems, "%d reads for %d missing objects", reads, many)
}
