package controller

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
)

// MRC-3c: alwaysUpdate is about the periodic run, and not about each drift.
func TestAlwaysUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.AlwaysUpdate = ptr.To(true) })
	f.apply("m", "a=1", "b=1")
	puts := f.target.count(http.MethodPut)
	f.complete("m")
	expect.Equal(t, f.target.count(http.MethodPut)-puts, 0, "updates in a run that somebody's change asked for")
	f.states.stepKnown(steps.OwnerOf(f.get("m")), lifecycle.PeriodEnded{All: true}) // The sweep.
	f.complete("m")
	expect.Equal(t, f.target.count(http.MethodPut)-puts, 2, "updates in the periodic run")
}

// updatesUnwatched is alwaysUpdate as profile gardener understands it.
func updatesUnwatched(c *config.ManagedResourceControllerConfig) {
	c.AlwaysUpdate, c.AlwaysUpdateScope = ptr.To(true), config.AlwaysUpdateUnwatched
}

// requested returns what is asked of the target for single objects while do runs, as "PUT a", sorted.
func (f *fixture) requested(do func()) []string {
	f.Helper()
	var mu sync.Mutex
	var all []string
	f.target.hook(func(method, name string) int {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, method+" "+name)
		return 0
	})
	defer f.target.hook(nil)
	do()
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(all)
	return all
}

// period lets a sync period end.
func (f *fixture) period(name string) {
	f.Helper()
	f.triggers.sweep()
	f.complete(name)
}

// MRC-3c, CFG-13: without watches the updates of alwaysUpdate are sent, a sync period each, and drift that nobody tells is repaired by them.
func TestAlwaysUpdateOfWhatIsNotWatched(t *testing.T) {
	t.Parallel()
	f := newFixture(t, updatesUnwatched)
	f.apply("m", "a=1", "b=1")
	both := []string{"GET a", "GET b", "PUT a", "PUT b"}
	for range 2 {
		expect.DeepEqual(t, f.requested(func() { f.period("m") }), both, "MRC-3c/a sync period")
	}
	if got := f.requested(func() { f.complete("m") }); slices.ContainsFunc(got, func(r string) bool { return r[:3] == "PUT" }) {
		t.Errorf("MRC-3c/a run that no sync period asked for: %q", got)
	}
	f.target.change("a", setValue("by hand"))
	f.period("m")
	expect.Equal(t, expect.First(f.target.value("a")), "1", "CFG-13/drift that nobody tells")
}

// MRC-3c, CFG-13: what watches cover is compared: no request while nothing changes, one update for drift, none at a start or when somebody asks.
func TestAlwaysUpdateOfWhatIsWatched(t *testing.T) {
	t.Parallel()
	f := newFixture(t, updatesUnwatched)
	f.watch()
	f.managed("m", "a=1", "b=1")
	f.rest("m")
	f.awaitCovered("m")
	f.complete("m")
	for range 3 {
		expect.Empty(t, f.requested(func() { f.period("m") }), "MRC-3c/a sync period without a change")
	}
	isPut := func(r string) bool { return r[:3] == http.MethodPut }
	if got := f.requested(func() { f.edited("a", setValue("by hand")); f.complete("m") }); !slices.Equal(slices.DeleteFunc(got, func(r string) bool { return !isPut(r) }), []string{"PUT a"}) {
		t.Errorf("MRC-3c/drift: %q", got)
	}
	expect.Equal(t, expect.First(f.target.value("a")), "1", "CFG-13/drift")
	f.states.step(f.get("m"), lifecycle.OperationFound{Operation: resourcesv1alpha1.OperationReconcile})
	got := f.requested(func() { f.complete("m") })
	expect.True(t, !slices.ContainsFunc(got, isPut) && len(got) != 0, "MRC-3c/somebody asks for a full run: %q", got)
	f.dropState(steps.OwnerOf(f.get("m")))
	if got := f.requested(func() { f.complete("m") }); slices.ContainsFunc(got, isPut) {
		t.Errorf("MRC-3c/a restart: %q", got)
	}
}

// MRC-3c, CFG-13: of a ManagedResource with objects of both sorts those are written that no watch covers, and the others are not asked for.
func TestAlwaysUpdateOfBoth(t *testing.T) {
	t.Parallel()
	f := newFixture(t, updatesUnwatched)
	f.target.breaks("/apis/old.example/v1/configmaps")
	f.watch()
	f.managed("m")
	f.manifests("m", "2", configMap("a", "1", "labels: {}"), "---\napiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: b}\ndata: {v: '1'}\n")
	f.complete("m")
	for _, ref := range f.Tracker.Progress(steps.OwnerOf(f.get("m"))).Refs {
		if ref.Name == "a" {
			poll(t, "a is covered", func() bool { return f.Watches.Covered(ref) })
		}
	}
	f.complete("m")
	for range 2 {
		expect.DeepEqual(t, f.requested(func() { f.period("m") }), []string{"GET b", "PUT b"}, "MRC-3c/a sync period")
	}
}

// MR-30: what is created only once has label and origin from its creation on, and is never written again: neither an
// object that existed before, also with alwaysUpdate, nor one that somebody has changed.
func TestCreateOnly_IsWrittenOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.AlwaysUpdate = ptr.To(true) })
	f.target.put("before", "theirs", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationDescription: "d"}})
	f.managed("m", "created!=1", "before!=1")
	before := f.target.versionOf("before")
	f.complete("m")
	created := f.live("created")
	if created.GetLabels()[resourcesv1alpha1.LabelManagedBy] != "gardener" ||
		created.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "n/m" {
		t.Errorf("MR-30: created with labels %v, annotations %v", created.GetLabels(), created.GetAnnotations())
	}
	f.edited("created", setValue("theirs"))
	version := f.target.versionOf("created")
	f.states.step(f.get("m"), lifecycle.OperationFound{Operation: resourcesv1alpha1.OperationReconcile})
	f.complete("m")
	expect.True(t, f.target.versionOf("before") == before && f.target.versionOf("created") == version,
		"MR-30: an object was written that existed")
	got := f.inventory("m")
	expect.True(t, strings.Contains(got, "before") && strings.Contains(got, "created"), "MR-30: inventory %s", got)
}
