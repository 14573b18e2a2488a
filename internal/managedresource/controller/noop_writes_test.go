package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/test/expect"
)

// MRB-8: where only the API server knows that a write changes nothing, it is asked once: until the manifest or the object is another
// one, somebody asks for it, or a while has passed.
func TestWritesInVain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.drop("gated")
	manifest := func(version, value string) {
		f.manifests("m", version, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a}\ndata: {v: '%s', gated: x}\n", value))
	}
	f.managed("m")
	manifest("2", "1")
	f.complete("m")
	runs := func(what string, want int) {
		t.Helper()
		before := f.target.count(http.MethodPut)
		for range 5 { // Nothing is watched, so that each run looks.
			f.complete("m")
		}
		expect.Equal(t, f.target.count(http.MethodPut)-before, want, "%s: writes", what)
	}
	runs("as created", 1)
	f.edited("a", setValue("theirs"))
	runs("edited", 1)
	expect.Equal(t, expect.First(f.target.value("a")), "1", "the value")
	manifest("3", "2")
	runs("another manifest", 2) // One that changes something, and one in vain.
	f.edited("a", setAnnotation("theirs", "x"))
	runs("with a foreign annotation", 1)
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile}
	})
	runs("asked for", 1)
	f.clock.SetTime(f.clock.Now().Add(2*apply.NoopRetry + time.Second))
	runs("some time later", 1)
	f.target.drop("")
	f.clock.SetTime(f.clock.Now().Add(2*apply.NoopRetry + time.Second))
	runs("once it is taken", 1)
	expect.Equal(t, f.live("a").Object["data"].(map[string]any)["gated"], "x", "the field is not there")
}

// drop sets which field is taken and left out, none if it is empty.
func (s *store) drop(field string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = field
}

// sweepFor lets time pass, a sync period at a time.
func (f *fixture) sweepFor(name string, long time.Duration) {
	f.Helper()
	for end := f.clock.Now().Add(long); f.clock.Now().Before(end); {
		f.clock.SetTime(f.clock.Now().Add(f.Config.SyncPeriod.Duration))
		f.triggers.sweep()
		f.complete(name)
	}
}

// MRB-8, promise of ResourcesApplied: what an API server left out of a write that it took is written once more after a while, also where
// watches report all changes, and is neither drift nor asked for more often. An object that was kept is not looked at.
func TestWhatWasDroppedIsWrittenAgain(t *testing.T) {
	t.Parallel()
	const kind = "apiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a}\ndata: "
	for how, prepare := range map[string]func(*fixture){
		"created": func(f *fixture) {
			f.target.drop("gated")
			f.manifests("m", "2", kind+"{v: '1', gated: x}\n")
			f.rest("m")
		},
		"updated": func(f *fixture) {
			f.manifests("m", "2", kind+"{v: '1'}\n")
			f.rest("m")
			f.target.drop("gated")
			f.manifests("m", "3", kind+"{v: '2', gated: x}\n")
			f.rest("m")
		},
		"nothing but that": func(f *fixture) {
			f.manifests("m", "2", kind+"{v: '1'}\n")
			f.rest("m")
			f.target.drop("gated")
			f.manifests("m", "3", kind+"{v: '1', gated: x}\n")
			f.rest("m")
		},
	} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t)
			f.watch()
			f.managed("m")
			prepare(f)
			reads, writes := f.target.count(http.MethodGet), f.target.count(http.MethodPut)
			f.sweepFor("m", 4*apply.NoopRetry)
			if reads, writes = f.target.count(http.MethodGet)-reads, f.target.count(http.MethodPut)-writes; writes < 1 || writes > 4 || reads > writes {
				t.Errorf("in four times of %s: %d reads, %d writes", apply.NoopRetry, reads, writes)
			}
			f.target.drop("")
			f.sweepFor("m", 2*apply.NoopRetry+time.Minute)
			expect.Equal(t, f.live("a").Object["data"].(map[string]any)["gated"], "x", "the field is not there")
			before := f.target.count(http.MethodGet, http.MethodPut)
			f.sweepFor("m", 4*apply.NoopRetry)
			now := f.target.count(http.MethodGet, http.MethodPut)
			expect.Equal(t, now, before, "%d requests, though the object is as its manifest says", now-before)
			expect.False(t, strings.Contains(f.events(), apply.ReasonDrift),
				"nobody has changed the object: %s", f.events())
		})
	}
}

// MRB-8: as soon as a definition is known to have changed, what was dropped of objects of its kind is written, though the same write was in vain
// a moment ago.
func TestWhatWasDroppedIsWrittenWithAnotherDefinition(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	drain := f.woken()
	f.target.drop("gated")
	f.managed("m")
	f.manifests("m", "2", "apiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a}\ndata: {v: '1', gated: x}\n")
	f.rest("m")
	key := configMapKey("a")
	key.Group = "old.example"
	f.Tracker.RetryKind(key.GroupKind())
	drain() // In vain.
	f.target.drop("")
	f.Tracker.RetryKind(key.GroupKind())
	drain()
	expect.Equal(t, f.live("a").Object["data"].(map[string]any)["gated"], "x", "the field is not there")
	writes := f.target.count(http.MethodPut)
	f.Tracker.RetryKind(key.GroupKind())
	drain()
	if now := f.target.count(http.MethodPut); now != writes || strings.Contains(f.events(), apply.ReasonDrift) {
		t.Errorf("%d writes with everything as it should be; %s", now-writes, f.events())
	}
}

// MR-33: what is written only as the API server may keep more of it by now is not deleted to be created anew, should that be refused as invalid: it
// would be the same again. Another manifest is another matter.
func TestRetryReplacesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.target.drop("gated")
	manifest := func(version string) {
		f.manifests("m", version, "apiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a, annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}}\n"+
			"data: {v: '"+version+"', gated: x}\n")
	}
	f.managed("m")
	manifest("2")
	f.rest("m")
	f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
	writes := f.target.count(http.MethodPut)
	f.sweepFor("m", 4*apply.NoopRetry)
	if tries := f.target.count(http.MethodPut) - writes; f.target.count(http.MethodDelete) > 0 || tries < 1 || tries > 4 {
		t.Errorf("%d writes and %d deletions of an object that nobody changed; %s", tries, f.target.count(http.MethodDelete), f.condition("m"))
	}
	manifest("3")
	_, _ = f.run("m")
	expect.Equal(t, f.target.count(http.MethodDelete), 1, "another manifest: deletions, want 1; %s", f.condition("m"))
}

// MRB-34, MR-33: what is written once more, and refused, is not taken for right if somebody else has put another object in its place.
func TestRetryOfAnotherObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.target.drop("gated")
	f.managed("m")
	f.manifests("m", "2", "apiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: a, annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}}\n"+
		"data: {v: '1', gated: x}\n")
	f.rest("m")
	// It is written again soon. Meanwhile somebody else deletes it and creates it with something immutable; the watch lags behind.
	object := f.live("a")
	f.target.remove("a")
	meta := map[string]any{"name": "a", "namespace": "n", "uid": "theirs", "annotations": map[string]any{}, "labels": map[string]any{}}
	for key, value := range object.GetLabels() {
		meta["labels"].(map[string]any)[key] = value
	}
	for key, value := range object.GetAnnotations() {
		meta["annotations"].(map[string]any)[key] = value
	}
	f.target.mu.Lock()
	f.target.putLocked("a", map[string]any{"apiVersion": "old.example/v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{"v": "theirs"}})
	f.target.mu.Unlock()
	f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
	key := configMapKey("a")
	key.Group = "old.example"
	f.clock.SetTime(f.clock.Now().Add(2*apply.NoopRetry + time.Second))
	f.triggers.sweep()
	_, _ = f.run("m")
	// The watch tells now, with what is there; sweeps go on for hours.
	live := f.live("a")
	live.SetAPIVersion("old.example/v1")
	f.Tracker.Observe(f.Watches.View().Observation(live))
	_, _ = f.run("m")
	for range 6 {
		f.clock.SetTime(f.clock.Now().Add(2*apply.NoopRetry + time.Second))
		f.triggers.sweep()
		_, _ = f.run("m")
	}
	if v, there := f.target.value("a"); there && v != "1" && strings.HasPrefix(f.condition("m"), "True") {
		t.Errorf("hours later the object has %q, nothing was deleted (%d), and ResourcesApplied is %s", v, f.target.count(http.MethodDelete), f.condition("m"))
	}
}
