package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func withRepairDelay(cfg *config.ManagedResourceControllerConfig) {
	cfg.DriftRepairDelay = &metav1.Duration{Duration: 10 * time.Minute}
}

func configMapKey(name string) objects.ID {
	return objects.ID{Kind: "ConfigMap", Namespace: "n", Name: name}
}

// goneNow removes an object whose finalizers are done, and reports it as a watch does.
func (f *fixture) goneNow(name string) {
	f.target.mu.Lock()
	delete(f.target.objects, name)
	f.target.version++
	version := fmt.Sprint(f.target.version)
	f.target.mu.Unlock()
	f.observeGone(configMapKey(name), "", version)
}

// MRL-6, MRB-3: a label that a run gave another value is taken away when no manifest has it any more, though that run was overtaken by a new
// specification and did not come to say what it wrote.
func TestChangedLabelOfAnOvertakenRunIsRemoved(t *testing.T) {
	t.Parallel()
	for what, metadata := range map[string]string{"labels": "labels: {x: '%s'}", "annotations": "annotations: {x: '%s'}"} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m", "a=1")
			f.manifests("m", "2", configMap("a", "1", fmt.Sprintf(metadata, "1")))
			f.complete("m")
			f.manifests("m", "3", configMap("a", "1", fmt.Sprintf(metadata, "2")))
			edited := false
			f.target.after = func(method, _ string) int {
				if method == http.MethodPut && !edited {
					edited = true
					f.manifests("m", "4", configMap("a", "1", ""))
					f.edit("m", func(*resourcesv1alpha1.ManagedResource) {})
				}
				return 0
			}
			f.complete("m")
			must.True(t, edited && strings.HasPrefix(f.condition("m"), "True/"), "edited: %t, %s", edited, f.condition("m"))
			left, found, _ := unstructured.NestedString(f.live("a").Object, "metadata", what, "x")
			expect.False(t, found, "no manifest has x, which is %q still", left)
		})
	}
}

// MRT-2: an ignored ManagedResource that was deleted and created again, ignored as well, in a gap of the watch is another one (MR-3: it gets
// its conditions).
func TestIgnoredAndCreatedAnewInAGap(t *testing.T) {
	t.Parallel()
	before := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}}}
	after := before.DeepCopy()
	after.UID = "2"
	r := &Reconciler{Options: Options{Class: meta.NewClass(""), Tracker: objects.New()}}
	expect.True(t, (&Triggers{reconciler: r}).predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}),
		"nobody looks at the new one")
}

// Drift: the delay is for what somebody else did. An object that this instance deleted, as its manifest or its class was gone for a while, and that its
// manifests have again by the time at which its finalizers are done, is created anew at once.
func TestOwnDeletionIsNotHeldOnceItIsWantedAgain(t *testing.T) {
	t.Parallel()
	ofClass := func(class *string) func(*fixture) {
		return func(f *fixture) {
			f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = class })
		}
	}
	for name, tc := range map[string]struct{ goes, returns func(*fixture) }{
		"its manifest": {func(f *fixture) { f.secret("m", "2", "b=1") }, func(f *fixture) { f.secret("m", "3", "a=1", "b=1") }},
		"its class":    {ofClass(ptr.To("other")), ofClass(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, withRepairDelay)
			f.watch()
			f.managed("m", "a=1", "b=1")
			f.rest("m")
			f.edited("a", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) })
			f.rest("m")
			tc.goes(f)
			f.complete("m")
			if got := f.condition("m"); !strings.Contains(got, "DeletionPending") {
				t.Fatal(got)
			}
			f.Tracker.Observe(f.Watches.View().Observation(f.live("a"))) // As the watch does: it is terminating.
			tc.returns(f)
			f.complete("m")
			f.complete("m")
			f.goneNow("a")
			result, err := f.run("m")
			f.must(err)
			expect.True(t, expect.OK(f.target.value("a")),
				"a is missing, looked at again after %s; %s; events: %s", result.RequeueAfter, f.condition("m"), f.events())
		})
	}
}

// ResourcesApplied=True: an object whose deletion was sent by a run that was overtaken is looked at by the next one, which wants it, though the
// watch has not told of its end. If the watch tells between the two runs, it is created anew without the delay of repairs.
func TestDeletedByAnOvertakenRunIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{false, true} {
		t.Run(fmt.Sprint("told between the runs, with a delay: ", told), func(t *testing.T) {
			f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) {
				if told {
					withRepairDelay(cfg)
				}
			})
			f.watch()
			f.managed("m", "a=1", "b=1")
			f.rest("m")
			f.secret("m", "2")
			deletions := f.deletesOne(func() { f.secret("m", "3", "a=1", "b=1") })
			if !told {
				f.complete("m")
			} else if _, err := f.run("m"); err != nil {
				t.Fatal(err)
			}
			_, deleted := deletions()
			must.True(t, len(deleted) != 0, "nothing was deleted")
			if told {
				f.target.hook(nil)
				for _, name := range deleted {
					f.goneNow(name)
				}
				f.complete("m")
			}
			for _, name := range []string{"a", "b"} {
				expect.True(t, expect.OK(f.target.value(name)), "%s is missing: %s; %s", name, f.condition("m"), f.events())
			}
		})
	}
}

// ResourcesApplied=True, lost answers: a write that was not answered may have been carried out. Once the manifest is as it was before, the
// object is looked at, though the watch has not told of the write.
func TestUnansweredWriteOfATakenBackManifest(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("told later, with a delay: %t", held), func(t *testing.T) {
			f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) {
				if held {
					withRepairDelay(cfg)
				}
			})
			f.watch()
			f.managed("m", "a=1", "b=1")
			f.rest("m")
			f.secret("m", "2", "a=2", "b=1")
			f.target.mu.Lock()
			f.target.after = func(method, _ string) int {
				if method == http.MethodPut {
					return http.StatusInternalServerError
				}
				return 0
			}
			f.target.mu.Unlock()
			if _, err := f.run("m"); err == nil {
				t.Fatal("no error")
			}
			f.target.mu.Lock()
			f.target.after = nil
			f.target.mu.Unlock()
			if held { // The watch reports our own write before the next run.
				f.Tracker.Observe(f.Watches.View().Observation(f.live("a")))
			}
			f.secret("m", "3", "a=1", "b=1")
			f.complete("m")
			value, _ := f.target.value("a")
			expect.Equal(t, value, "1", "a is %s: %s; %s", value, f.condition("m"), f.events())
		})
	}
}

// Drift: alwaysUpdate writes all objects once a sync period; what is held for the delay of repairs is held there, too.
func TestDelayWithAlwaysUpdate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRepairDelay, func(cfg *config.ManagedResourceControllerConfig) { *cfg.AlwaysUpdate = true })
	f.apply("m", "a=1")
	f.edited("a", setValue("by hand"))
	f.complete("m")
	must.Equal(t, expect.First(f.target.value("a")), "by hand", "it is not held")
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.states.stepKnown(steps.OwnerOf(f.get("m")), lifecycle.PeriodEnded{All: true}) // The sweep.
	f.complete("m")
	expect.Equal(t, expect.First(f.target.value("a")), "by hand",
		"the edit was taken back after a minute, and not after ten; %s", f.events())
}

// Drift: a start looks at all objects that are not known to be right, once. While another object fails, those that this process has verified, and
// that watches cover, are not read with each attempt.
func TestFailingFirstRunLooksOnce(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1", "b=1")
	f.dropState(steps.OwnerOf(f.get("m"))) // A restart.
	f.watch()
	looks := 0
	f.target.put("b", "7", nil)
	f.target.hook(func(method, name string) int {
		if method == http.MethodPut && name == "b" {
			return http.StatusForbidden
		}
		if method == http.MethodGet && name == "a" {
			looks++
		}
		return 0
	})
	if _, err := f.run("m"); err == nil {
		t.Fatal("no error")
	}
	f.awaitCovered("m")
	if _, err := f.run("m"); err == nil {
		t.Fatal("no error")
	}
	looks = 0
	for range 10 {
		if _, err := f.run("m"); err == nil {
			t.Fatal("no error")
		}
	}
	recorded := f.Tracker.Get(configMapKey("a"))
	expect.Equal(t, looks, 0, "a is verified: %t, and was read %d times in 10 attempts", recorded.InSync, looks)
}
