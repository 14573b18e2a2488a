package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// beforeStatus calls f before the n-th write of a status.
func (f *fixture) beforeStatus(n int, do func() error) {
	seen := 0
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if seen++; seen == n {
			if err := do(); err != nil {
				return err
			}
		}
		return c.SubResource(sub).Patch(ctx, object, patch, opts...)
	}
}

// MR-13, MRS-4: whenever the specification changes during a run, what is reported as done is what was done.
func TestOneRunIsAboutOneForm(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 2; n++ {
		t.Run(fmt.Sprint("changed before status write ", n), func(t *testing.T) {
			f := newFixture(t)
			f.managed("m", "a=old")
			f.secret("other", "1", "b=new")
			f.beforeStatus(n, func() error {
				f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "other" })
				return nil
			})
			result, err := f.run("m")
			expect.True(t, err == nil && result.RequeueAfter == time.Millisecond,
				"the run must end and begin anew: %v, %v", result, err)
			got := f.get("m").Status.ObservedGeneration
			expect.Equal(t, got, 0, "HLP-24: observedGeneration is %d after a run for generation 1 that was overtaken", got)
			f.complete("m")
			expect.Equal(t, expect.First(f.target.value("b")), "new", "the new content is not applied")
			expect.False(t, expect.OK(f.target.value("a")), "the old content is still there")
			if mr := f.get("m"); mr.Status.ObservedGeneration != 2 || f.inventory("m") != "b" {
				t.Errorf("observedGeneration %d, inventory %s", mr.Status.ObservedGeneration, f.inventory("m"))
			}
		})
	}
}

// MRK-5: a ManagedResource that went to another class and came back keeps its objects.
func TestHandOverIsConfirmed(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("other") })
	older := f.get("m")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = nil })
	f.Statuses.Written(older)
	expect.Equal(t, expect.ErrorOf(f.Reconciler.run(f.ctx, older)), steps.ErrSuperseded)
	expect.True(t, expect.OK(f.target.value("a")),
		"the object was deleted for a class that the ManagedResource has not any more")
}

// MRB-3: what another instance put into the inventory meanwhile is not lost.
func TestInventoryIsExtended(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1")
	f.beforeStatus(1, func() error {
		mr := f.get("m")
		f.target.put("theirs", "1", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: "n/m"}})
		mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{}}
		mr.Status.Resources[0].APIVersion, mr.Status.Resources[0].Kind, mr.Status.Resources[0].Namespace, mr.Status.Resources[0].Name = "v1", "ConfigMap", "n", "theirs"
		return f.source.Status().Update(f.ctx, mr)
	})
	result, err := f.run("m")
	expect.True(t, err == nil && result.RequeueAfter == time.Millisecond, "got %v, %v", result, err)
	expect.Equal(t, f.inventory("m"), "theirs", "inventory")
	f.complete("m")
	if _, found := f.target.value("theirs"); found || f.inventory("m") != "a" {
		t.Errorf("what the other instance created is not looked after: there %t, inventory %s", found, f.inventory("m"))
	}
}

// MRX, ownership: what is deleted, and what stays.
func TestOwnership(t *testing.T) {
	t.Parallel()
	origin := func(value string) map[string]any {
		return map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: value}}
	}
	for name, tc := range map[string]struct {
		reason string
		// content is that of the ManagedResource, before is done before it is applied, after before it is deleted.
		content       string
		before, after func(f *fixture)
		stays         bool
	}{
		"ours": {reason: "it carries our origin", content: "a=1"},
		"could never be written": {reason: "it was there before and every update was refused", content: "a=1", stays: true,
			before: func(f *fixture) {
				f.target.put("a", "theirs", nil)
				f.target.on = func(method, _ string) int {
					if method == http.MethodPut {
						return http.StatusForbidden
					}
					return 0
				}
			}},
		"taken over": {reason: "it was there before, and was updated", content: "a=1", before: func(f *fixture) { f.target.put("a", "theirs", nil) }},
		"answer lost": {reason: "it was created, though the answer said otherwise", content: "a=1",
			before: func(f *fixture) {
				f.target.after = func(method, _ string) int {
					if method == http.MethodPost {
						f.target.after = nil
						return http.StatusGatewayTimeout
					}
					return 0
				}
			}},
		"replaced by somebody": {reason: "another object has the name by now", content: "a=1", stays: true,
			after: func(f *fixture) { f.target.remove("a"); f.target.put("a", "theirs", nil) }},
		"origin taken away": {reason: "this process created the object with this UID", content: "a=1",
			after: func(f *fixture) {
				f.target.change("a", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
			}},
		"of another ManagedResource that has it not": {reason: "its origin is not ours, and nothing else proves that it is", content: "a=1", stays: true,
			after: func(f *fixture) { f.target.remove("a"); f.target.put("a", "theirs", origin("n/unknown")) }},
		"created once":            {reason: "the inventory says that we created it", content: "a!=1"},
		"created once, was there": {reason: "it was never ours", content: "a!=1", stays: true, before: func(f *fixture) { f.target.put("a", "theirs", nil) }},
		"created once, replaced": {reason: "it is another one than the inventory says", content: "a!=1", stays: true,
			after: func(f *fixture) { f.target.remove("a"); f.target.put("a", "theirs", nil) }},
	} {
		for _, how := range []string{"deleted", "left out"} {
			t.Run(name+" "+how, func(t *testing.T) {
				f := newFixture(t)
				f.managed("m", tc.content)
				if tc.before != nil {
					tc.before(f)
				}
				f.runs("m", 3)
				f.target.on = nil
				if tc.after != nil {
					tc.after(f)
				}
				if how == "deleted" {
					f.must(f.source.Delete(f.ctx, f.get("m")))
				} else {
					f.secret("m", "2")
				}
				f.runs("m", 3)
				expect.Equal(t, expect.OK(f.target.value("a")), tc.stays, "%s: there", tc.reason)
				mr := &resourcesv1alpha1.ManagedResource{}
				err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, mr)
				if how == "deleted" && !apierrors.IsNotFound(err) {
					t.Errorf("the ManagedResource is still there: %s", f.condition("m"))
				}
			})
		}
	}
}

// MRB-17: an object that changes hands between the look and the deletion stays.
func TestDeletionIsBoundToWhatWasJudged(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.on = func(method, _ string) int {
		if method == http.MethodDelete {
			f.target.on = nil
			f.target.change("a", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationKeepObject: "true"})
			})
		}
		return 0
	}
	f.secret("m", "2")
	f.complete("m")
	expect.True(t, expect.OK(f.target.value("a")), "an object that was annotated to be kept was deleted")
}

// MRB-16: of two ManagedResources that have an object, the one whose inventory got it last keeps it, restarts or not.
func TestMovedObjects(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "from", "a=1")
	f.apply("to", "a=1")
	origin := func() string {
		f.target.mu.Lock()
		defer f.target.mu.Unlock()
		o := unstructured.Unstructured{Object: f.target.objects["a"]}
		return o.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	}
	must.Equal(t, origin(), "n/to", "origin")
	// A restart: nothing is remembered.
	f.dropState(objects.Owner{Namespace: "n", Name: "from"})
	f.dropState(objects.Owner{Namespace: "n", Name: "to"})
	f.complete("to")
	f.complete("from")
	expect.Equal(t, origin(), "n/to", "the former owner took it back: origin")
	f.secret("from", "2")
	f.complete("from")
	if _, found := f.target.value("a"); !found || f.inventory("from") != "" {
		t.Errorf("there %t, inventory %q", found, f.inventory("from"))
	}
	f.must(f.source.Delete(f.ctx, f.get("to")))
	f.complete("to")
	expect.False(t, expect.OK(f.target.value("a")), "nobody has it any more")
}

// MRT-6: a run for one drifted object reads no object that another ManagedResource owns and has compared with the same manifest.
func TestSharedObjectsAreComparedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.watch()
	f.apply("m", "a=1", "b=1")
	f.managed("owner", "a=1")
	f.rest("owner")
	f.rest("m")
	f.rest("owner")
	before := f.target.count(http.MethodGet)
	f.edited("b", setValue("2"))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("b")), "1", "the drift is not repaired")
	got := f.target.count(http.MethodGet) - before
	expect.Equal(t, got, 1, "MRT-6: the run reads %d objects, want the drifted one", got)
}

// MRB-16: two ManagedResources that are deleted together leave nothing behind that both had.
func TestSharedObjectsGoWithTheLast(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("one", "two")
	for _, name := range []string{"one", "two"} {
		f.must(f.source.Delete(f.ctx, f.get(name)))
	}
	f.complete("one")
	f.complete("two")
	expect.False(t, expect.OK(f.target.value("a")), "both left it to the other")
}

// MRB-3, MR-12: whatever request fails or loses its answer, the next runs put everything right, and say so.
func TestEveryRequestMayFail(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		for _, where := range []string{"status", "status lost", "status changed", "target", "target lost"} {
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprint(where, " ", n, ", watched: ", watched), func(t *testing.T) { testRequestFails(t, watched, where, n) })
			}
		}
	}
}

func testRequestFails(t *testing.T, watched bool, where string, n int) {
	t.Parallel()
	f := newFixture(t)
	if watched {
		f.watch()
	}
	f.apply("m", "a=1", "b=1")
	if watched {
		f.awaitCovered("m")
		f.complete("m")
	}
	f.secret("m", "2", "a=2", "c=2")
	var seen atomic.Int32
	switch where {
	case "status":
		f.beforeStatus(n, func() error { return apierrors.NewInternalError(fmt.Errorf("no")) })
	case "status lost":
		f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
			if seen.Add(1) == int32(n) && err == nil {
				return apierrors.NewInternalError(fmt.Errorf("no"))
			}
			return err
		}
	case "status changed": // By others, again and again, until the run gives up.
		f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if write := int(seen.Add(1)); write >= n && write < n+10 {
				return apierrors.NewConflict(resourcesv1alpha1.SchemeGroupVersion.WithResource("managedresources").GroupResource(), "m", errors.New("changed"))
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		}
	default:
		fault := func(method, _ string) int {
			if method == http.MethodGet {
				return 0
			}
			if seen.Add(1) == int32(n) {
				return http.StatusInternalServerError
			}
			return 0
		}
		if where == "target" {
			f.target.on = fault
		} else {
			f.target.after = fault
		}
	}
	f.runs("m", 3)
	a, _ := f.target.value("a")
	_, b := f.target.value("b")
	c, _ := f.target.value("c")
	expect.True(t, a == "2" && !b && c == "2", "a=%q, b there: %t, c=%q", a, b, c)
	if got := f.condition("m"); !strings.HasPrefix(got, "True/ApplySucceeded") || f.inventory("m") != "a c" {
		t.Errorf("%s, inventory %s", got, f.inventory("m"))
	}
}

// MR-7: without a Secret nothing is deleted, and the condition tells.
func TestSecretIsGone(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.withoutSecret("m")
	_, _ = f.run("m")
	got := f.condition("m")
	expect.True(t, strings.HasPrefix(got, "False/CannotReadSecret"), "got %s", got)
	expect.True(t, expect.OK(f.target.value("a")), "the object was deleted")
	f.secret("m", "7", "a=1")
	f.complete("m")
	if got := f.condition("m"); !strings.HasPrefix(got, "True") {
		t.Errorf("got %s", got)
	}
}

// MRX-18: an entry that no API server can have is no reason to keep a finalizer.
func TestImpossibleEntries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	mr := f.get("m")
	for _, name := range []string{"a/b", "..", ""} {
		ref := resourcesv1alpha1.ObjectReference{}
		ref.APIVersion, ref.Kind, ref.Namespace, ref.Name = "v1", "ConfigMap", "n", name
		mr.Status.Resources = append(mr.Status.Resources, ref)
	}
	f.must(f.source.Status().Update(f.ctx, mr))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	f.complete("m")
	if err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, mr); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v, %s", err, f.condition("m"))
	}
}

// MRX-11, MRT-5: waiting for objects that something holds costs one read a minute for each.
func TestStuckDeletionsAreCheap(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("cm%02d=1", i))
	}
	f.apply("m", names...)
	for name := range f.target.objects {
		f.target.change(name, func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) })
	}
	f.must(f.source.Delete(f.ctx, f.get("m")))
	before := f.target.count(http.MethodGet, http.MethodDelete)
	_, _ = f.run("m")
	got := f.target.count(http.MethodGet, http.MethodDelete) - before
	expect.True(t, got <= 20*5, "%d requests for 20 objects in the first run", got)
	expect.Contains(t, f.condition("m"), "it waits for the finalizers x/y")
	before = f.target.count(http.MethodGet, http.MethodDelete)
	for range 12 { // a minute
		f.clock.SetTime(f.clock.Now().Add(pendingRetry))
		_, _ = f.run("m")
	}
	if got := f.target.count(http.MethodGet, http.MethodDelete) - before; got > 20 {
		t.Errorf("%d requests for 20 objects in a minute", got)
	}
	for name := range f.target.objects {
		f.target.remove(name)
	}
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.complete("m")
	if err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, &resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
		t.Error("the ManagedResource outlives its objects")
	}
}

// MRX-11: an object that has left the filter of a watch, and then something holds, is there; the ManagedResource waits for it.
func TestWithoutLabelsIsNotGone(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.change("a", func(o *unstructured.Unstructured) {
		o.SetLabels(nil)
		o.SetFinalizers([]string{"x/y"})
	})
	f.observeGone(f.Tracker.Progress(steps.OwnerOf(f.get("m"))).Refs[0].ID, "", f.target.versionOf("a")) // What a filtered watch makes of it.
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, _ = f.run("m")
	expect.Contains(t, f.condition("m"), "it waits for the finalizers x/y")
	f.target.remove("a")
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.complete("m")
	if err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, &resourcesv1alpha1.ManagedResource{}); !apierrors.IsNotFound(err) {
		t.Error("the ManagedResource outlives its object")
	}
}

// MR-15: a webhook that hangs is asked a few times for a kind, and not for each of its objects.
func TestSlowKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("cm%03d=1", i))
	}
	f.managed("m", names...)
	f.target.on = func(method, _ string) int {
		if method == http.MethodPost {
			return http.StatusGatewayTimeout
		}
		return 0
	}
	_, _ = f.run("m")
	got := f.target.count(http.MethodPost)
	expect.True(t, got <= steps.PerRun+steps.TooManyTimeouts, "MR-15: %d objects were tried", got)
	if got := f.condition("m"); !strings.HasPrefix(got, "False/ApplyFailed") || !strings.Contains(got, "not tried") {
		t.Errorf("got %s", got)
	}
}

// MRB-34: drift is told of at once, and put right after the delay.
func TestDriftIsToldAndDelayed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *config.ManagedResourceControllerConfig) { c.DriftRepairDelay.Duration = 10 * time.Minute })
	f.apply("m", "a=1")
	edit := func(value string) {
		f.target.change("a", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, value, "data", "v")
			now := metav1.NewTime(f.clock.Now())
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, Time: &now}})
		})
		f.target.mu.Lock()
		o := &unstructured.Unstructured{Object: f.target.objects["a"]}
		f.target.mu.Unlock()
		f.Tracker.Observe(f.Watches.View().Observation(o))
	}
	edit("by hand")
	result, err := f.run("m")
	f.must(err)
	expect.True(t, result.RequeueAfter > 0 && result.RequeueAfter <= 10*time.Minute,
		"the next run is due in %s", result.RequeueAfter)
	expect.Equal(t, expect.First(f.target.value("a")), "by hand", "the edit was taken back at once")
	if got := f.events(); !strings.Contains(got, `ObjectChanged: v1/ConfigMap/n/a was changed by "kubectl-edit" at data.v; it is repaired in 10m0s`) {
		t.Errorf("events: %s", got)
	}
	f.clock.SetTime(f.clock.Now().Add(11 * time.Minute))
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "1", "not put right after the delay")
	edit("again")
	f.secret("m", "2", "a=2")
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "2", "a new manifest does not wait")
}

// MRS-4, MR-13: what a process that was the leader before says after it is taken back, and what somebody takes out of the inventory is put into it
// again, though nothing else asks for a run.
func TestReportOfAFormerLeader(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]func(*resourcesv1alpha1.ManagedResourceStatus){
		"of a run that never ends": func(status *resourcesv1alpha1.ManagedResourceStatus) {
			status.Conditions, _ = meta.Conditions(status.Conditions).With(time.Now(), meta.Conditions(status.Conditions).Invalidation(false)...)
			status.Resources = append(status.Resources, meta.AsTentative(resourcesv1alpha1.ObjectReference{
				ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "old"}}))
		},
		"of a run that failed": func(status *resourcesv1alpha1.ManagedResourceStatus) {
			status.Conditions, _ = meta.Conditions(status.Conditions).With(time.Now(),
				meta.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed, "no"))
		},
		"of other content":     func(status *resourcesv1alpha1.ManagedResourceStatus) { status.SecretsDataChecksum = ptr.To("old") },
		"that lacks an object": func(status *resourcesv1alpha1.ManagedResourceStatus) { status.Resources = nil },
		"with labels that were once": func(status *resourcesv1alpha1.ManagedResourceStatus) {
			status.Resources[0].Labels = map[string]string{"old": "x"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.watch()
			f.apply("m", "a=1")
			f.awaitCovered("m")
			f.complete("m")
			before := f.get("m")
			after := before.DeepCopy()
			report(&after.Status)
			f.must(f.source.Status().Update(f.ctx, after))
			expect.True(t, f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}),
				"it asks for no run")
			f.complete("m")
			if got := f.get("m").Status; meta.Conditions(got.Conditions).Status(resourcesv1alpha1.ResourcesApplied) != resourcesv1alpha1.ConditionTrue ||
				*got.SecretsDataChecksum != *before.Status.SecretsDataChecksum || !meta.SameInventory(got.Resources, before.Status.Resources) {
				t.Errorf("it says %+v", got)
			}
			now := f.get("m")
			expect.False(t, f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: now}),
				"the own report asks for another run")
		})
	}
}

// MRB-8: what this instance writes and deletes itself is no drift, even if a watch reports it before the answer does.
func TestOwnWritesAreNoDrift(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := func(name string) objects.ID {
		return objects.ID{Kind: "ConfigMap", Namespace: "n", Name: name}
	}
	// The watch reports each write at once.
	f.target.after = func(method, name string) int {
		f.target.mu.Lock()
		object := f.target.objects[name]
		version := fmt.Sprint(f.target.version)
		f.target.mu.Unlock()
		switch {
		case method == http.MethodGet:
		case object == nil:
			f.observeGone(key(name), "", version)
		default:
			f.Tracker.Observe(f.Watches.View().Observation(&unstructured.Unstructured{Object: object}))
		}
		return 0
	}
	// A list before the creation did not have them.
	f.target.on = func(method, name string) int {
		if method == http.MethodPost {
			f.observeGone(key(name), "", "")
		}
		return 0
	}
	f.apply("m", "a=1", "b=1")
	f.secret("m", "2", "a=2")
	f.complete("m")
	must.Equal(t, expect.First(f.target.value("a")), "2", "a")
	if corrected, noticed := total(t, f.Metrics.apply.Drift), total(t, f.Metrics.driftNoticed); corrected != 0 || noticed != 0 || f.events() != "" {
		t.Errorf("%v corrected, %v noticed, events: %s", corrected, noticed, f.events())
	}
	f.target.put("a", "theirs", nil)
	f.target.after(http.MethodPut, "a")
	f.complete("m")
	if corrected, noticed := total(t, f.Metrics.apply.Drift), total(t, f.Metrics.driftNoticed); corrected != 1 || noticed != 1 || !strings.Contains(f.events(), "v1/ConfigMap/n/a was changed") {
		t.Errorf("%v corrected, %v noticed, events: %s", corrected, noticed, f.events())
	}
}

// total is the sum of a metric over all its labels.
func total(t *testing.T, metric prometheus.Collector) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metric)
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// MRB-19, MR-11: a release that fails again and again flips no condition and makes no Events; another content is told of as new.
func TestFailedReleaseDoesNotFlip(t *testing.T) {
	t.Parallel()
	const ignored = "annotations: {resources.gardener.cloud/mode: Ignore}"
	f := newApplied(t, "m", "a=1")
	f.refuse(http.MethodPatch, "a", http.StatusForbidden)
	f.manifests("m", "2", configMap("a", "1", ignored))
	_, _ = f.run("m")
	var written []string
	f.onSource.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		err := c.SubResource(sub).Patch(ctx, object, patch, opts...)
		written = append(written, f.condition("m"))
		return err
	}
	events := f.events()
	for range 5 {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		_, _ = f.run("m")
	}
	expect.True(t, len(written) == 0 && f.events() == events,
		"five retries with the same content and the same error: ResourcesApplied was %q; events: %s", written, f.events())
	f.manifests("m", "3", configMap("a", "2", ignored))
	_, _ = f.run("m")
	expect.True(t, len(written) != 0 && strings.HasPrefix(written[0], "Progressing/ApplyProgressing"),
		"with another content it was %q", written)
}

// MRB-34: what a run deletes is no drift, whatever its scope, and neither is the end of what was terminating.
func TestOwnDeletionsAreNoDrift(t *testing.T) {
	t.Parallel()
	for name, clusterScoped := range map[string]bool{"namespaced": false, "cluster-scoped": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(clusterScoped)
			f.tellOfWrites()
			f.apply("m", "a=1", "b=1", "c=1")
			f.edited("c", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) })
			f.complete("m")
			before := total(t, f.Metrics.driftNoticed)
			f.secret("m", "2", "a=1")
			_, err := f.run("m")
			f.must(err)
			f.target.remove("c") // Its finalizer was removed.
			refs := f.Tracker.Progress(objects.Owner{Namespace: "n", Name: "m"}).Refs
			f.observeGone(refs[slices.IndexFunc(refs, func(r objects.Ref) bool { return r.Name == "c" })].ID, "", "9999")
			f.clock.SetTime(f.clock.Now().Add(time.Minute)) // No watch covers it here.
			f.complete("m")
			if got := total(t, f.Metrics.driftNoticed) - before; got != 0 || f.inventory("m") != "a" {
				t.Errorf("%v drifts noticed; inventory: %s", got, f.inventory("m"))
			}
		})
	}
}

// MRB-34: a ManagedResource that can't be completed looks at everything each time, and takes part in no 10 either.
func TestQuarrelOfWhatCannotBeCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m", "a=1", "b=1")
	f.target.on = func(method, name string) int {
		if name == "b" && method == http.MethodPost {
			return http.StatusForbidden
		}
		return 0
	}
	_, _ = f.run("m")
	repairs := 0
	for range 100 {
		f.clock.SetTime(f.clock.Now().Add(time.Second))
		if value, _ := f.target.value("a"); value == "1" {
			repairs++
			f.target.change("a", func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, "theirs", "data", "v") })
			f.target.mu.Lock()
			o := &unstructured.Unstructured{Object: f.target.objects["a"]}
			f.target.mu.Unlock()
			observation := f.Watches.View().Observation(o)
			f.Tracker.Observe(observation)
			f.Tracker.Drift(observation.ID, f.clock.Now(), objects.DriftNoticed)
		}
		_, _ = f.run("m")
	}
	expect.True(t, repairs <= 10+8, "%d repairs in 100 s", repairs)
}

// MRB-16: two ManagedResources that lose an object at the same time leave nothing behind.
func TestBothLoseAnObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sharing("one", "two")
	f.secret("one", "2")
	f.secret("two", "2")
	begun := false
	f.target.on = func(method, _ string) int {
		if method == http.MethodGet && !begun {
			begun = true // In the middle of the one's run, the other's begins and ends.
			_, _ = f.run("two")
		}
		return 0
	}
	_, _ = f.run("one")
	f.complete("one")
	f.complete("two")
	expect.False(t, expect.OK(f.target.value("a")), "both left it to the other: inventories %q, %q", f.inventory("one"), f.inventory("two"))
}

// MR-34, ownership: an immutable object that was never ours is not replaced.
func TestForeignObjectsAreNotReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.put("a", "theirs", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate: "true"}})
	f.managed("m", "a=1")
	f.target.on = func(method, _ string) int {
		if method == http.MethodPut {
			return http.StatusUnprocessableEntity
		}
		return 0
	}
	_, _ = f.run("m")
	expect.Equal(t, expect.First(f.target.value("a")), "theirs")
	expect.Contains(t, f.condition("m"), "nothing proves")
}

// MRB-34: after a restore of the target, what was known to be gone at a version that is still to come is looked at twice, though no
// list of its kind is to be had.
func TestRestoredTargetWithoutLists(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	key := objects.ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}
	f.observeGone(key, "", "1000")
	f.target.remove("a")
	for range 3 {
		f.complete("m")
	}
	if recorded := f.Tracker.Get(key); !recorded.InSync || f.target.count("POST") != 3 {
		t.Errorf("%d creations were tried, known is %+v", f.target.count("POST")-1, recorded)
	}
}

// MRB-3: an object is written only where its entry says, though its kind got another scope meanwhile.
func TestScopeChangesDuringARun(t *testing.T) {
	t.Parallel()
	for _, clusterScoped := range []bool{false, true} {
		t.Run(fmt.Sprintf("cluster-scoped by now: %t", clusterScoped), func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(!clusterScoped)
			f.managed("m", "a=1")
			f.beforeStatus(1, func() error {
				f.target.scope(clusterScoped)
				return nil
			})
			f.target.after = func(method, _ string) int {
				entries := f.get("m").Status.Resources
				if method == http.MethodPost && !slices.ContainsFunc(entries, func(ref resourcesv1alpha1.ObjectReference) bool { return (ref.Namespace == "") == clusterScoped }) {
					t.Errorf("it was created while its entry was %+v", entries)
				}
				return 0
			}
			f.complete("m")
			if _, found := f.target.value("a"); !found || !strings.HasPrefix(f.condition("m"), "True/ApplySucceeded") {
				t.Errorf("there: %t, %s", found, f.condition("m"))
			}
		})
	}
}

// Ownership: an object that was somebody's before it was taken over, and is again as it was then, is not ours.
func TestRestoredTarget(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.target.put("a", "theirs", map[string]any{"uid": "u"})
	f.apply("m", "a=1")
	f.target.put("a", "theirs", map[string]any{"uid": "u"})
	f.secret("m", "2")
	f.complete("m")
	expect.True(t, expect.OK(f.target.value("a")), "it was deleted")
}
