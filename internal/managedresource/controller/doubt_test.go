package controller

import (
	"strings"
	"testing"
	"time"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRH-4: what is in doubt and is left so, for a delay or while the ManagedResource waits for its state, is judged by what it is like.
func TestHealthOfWhatIsLeftInDoubt(t *testing.T) {
	t.Parallel()
	leave := map[string]func(f *fixture){
		"wait-for-state": func(f *fixture) {
			mr := f.get("mr")
			mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationWaitForState}
			f.must(f.source.Update(f.ctx, mr))
		},
		"driftRepairDelay": func(f *fixture) {},
	}
	setUp := func(t *testing.T, how string) *fixture {
		f := newFixture(t, func(c *config.ManagedResourceControllerConfig) {
			if how == "driftRepairDelay" {
				c.DriftRepairDelay.Duration = 10 * time.Minute
			}
		})
		return f
	}
	health := func(f *fixture) string {
		f.Helper()
		f.complete("mr")
		if applied := f.condition("mr"); !strings.HasPrefix(applied, "True/") {
			f.Fatalf("it is not judged: %s", applied)
		}
		assessment, err := f.Assessor.Assess(f.ctx, f.get("mr").Status.Resources)
		f.must(err)
		if assessment.Unsettled { // It stays so.
			assessment, err = f.Assessor.Confirm(f.ctx, f.get("mr").Status.Resources)
			f.must(err)
		}
		return string(assessment.Health.Status) + " " + assessment.Health.Message
	}
	for how, do := range leave {
		t.Run("missing, no watch/"+how, func(t *testing.T) {
			if how == "driftRepairDelay" {
				t.Skip("a run creates it at once: that it is missing was noticed by no watch")
			}
			f := setUp(t, how)
			f.apply("mr", "a=1")
			do(f)
			got := health(f)
			must.True(t, strings.HasPrefix(got, "True"), "%v", got)
			f.target.change("a", setValue("edited")) // Nothing reports it: its kind can't be watched.
			if got := health(f); !strings.HasPrefix(got, "True") {
				t.Fatal(got)
			}
			f.target.remove("a")
			for range 3 {
				got := health(f)
				expect.True(t, strings.HasPrefix(got, "False"), "MRH-4: it is missing, and health is %s", got)
			}
		})
		t.Run("back, no watch/"+how, func(t *testing.T) {
			if how == "driftRepairDelay" {
				t.Skip("a run creates it at once: that it is missing was noticed by no watch")
			}
			f := setUp(t, how)
			f.apply("mr", "a=1")
			do(f)
			f.target.remove("a")
			got := health(f)
			must.True(t, strings.HasPrefix(got, "False"), "%v", got)
			f.target.put("a", "1", nil)
			for range 3 {
				got := health(f)
				expect.True(t, strings.HasPrefix(got, "True"), "MRH-4, MRB-38: it is there, and health is %s", got)
			}
		})
		t.Run("label removed, watched/"+how, func(t *testing.T) {
			f := setUp(t, how)
			f.watch()
			f.managed("mr", "a=1")
			f.rest("mr")
			do(f)
			got := health(f)
			must.True(t, strings.HasPrefix(got, "True"), "%v", got)
			// To the watch, which is filtered by the label, that is the end of the object.
			f.target.change("a", setValue("1"))
			live := f.live("a")
			live.SetLabels(nil)
			f.target.mu.Lock()
			f.target.objects["a"] = live.Object
			f.target.mu.Unlock()
			f.observeGone(objects.NewID(live.GroupVersionKind().GroupKind(), "n", "a"), live.GetUID(), live.GetResourceVersion())
			for range 3 {
				got := health(f)
				expect.True(t, strings.HasPrefix(got, "True"), "MRH-4, MRB-38: it is there, and health is %s", got)
			}
		})
	}
}
