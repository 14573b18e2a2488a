package controller

import (
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// forcedFixture has ManagedResource m with ConfigMap a, which is being deleted for an hour, by the annotation if it is not empty.
func forcedFixture(t *testing.T, after string, act func(*fixture)) *fixture {
	t.Helper()
	f := newFixture(t)
	f.managed("m", "a=1")
	f.complete("m")
	act(f)
	mr := f.get("m")
	if after != "" {
		mr.Annotations = map[string]string{resourcesv1alpha1.AnnotationForceDeletionAfter: after}
		f.must(f.source.Update(f.ctx, mr))
	}
	f.must(f.source.Delete(f.ctx, f.get("m")))
	for range 4 {
		_, _ = f.run("m")
	}
	f.clock.SetTime(time.Now().Add(time.Hour))
	for range 4 {
		_, _ = f.run("m")
	}
	return f
}

func (f *fixture) isGone() bool {
	err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, &resourcesv1alpha1.ManagedResource{})
	return apierrors.IsNotFound(err)
}

func TestForcedDeletion(t *testing.T) {
	t.Parallel()
	finalized := func(f *fixture) { f.target.change("a", setFinalizer) }
	foreign := func(f *fixture) {
		f.target.change("a", func(o *unstructured.Unstructured) {
			setFinalizer(o)
			setAnnotation(resourcesv1alpha1.AnnotationOrigin, "n/z")(o)
			now := "2020-01-01T00:00:00Z"
			_ = unstructured.SetNestedField(o.Object, now, "metadata", "deletionTimestamp")
		})
	}
	unreachable := func(code int) func(f *fixture) {
		return func(f *fixture) { f.refuse(http.MethodGet, "a", code) }
	}
	for name, c := range map[string]struct {
		after        string
		act          func(*fixture)
		gone, exists bool
		says         string
	}{
		"MRX-24/never by default":           {"", finalized, false, true, "it waits for the finalizers x/y"},
		"MRX-24/finalizers":                 {"10m", finalized, true, false, ""},
		"MRX-24/at once":                    {"0s", finalized, true, false, ""},
		"MRX-24/an object of another":       {"10m", foreign, true, true, ""},
		"MRX-24/no duration":                {"soon", finalized, false, true, "annotation resources.gardener.cloud/force-deletion-after of the ManagedResource is no duration such as 10m"},
		"MRX-25/never by default":           {"", unreachable(http.StatusInternalServerError), false, true, "is still pending: "},
		"MRX-25/it cannot be reached":       {"10m", unreachable(http.StatusInternalServerError), true, true, ""},
		"MRX-25/the grace period goes on":   {"2h", unreachable(http.StatusInternalServerError), false, true, "is still pending: "},
		"MRX-25/reached, and access denied": {"10m", unreachable(http.StatusForbidden), false, true, "is still pending: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := forcedFixture(t, c.after, c.act)
			if f.isGone() != c.gone {
				t.Fatalf("the ManagedResource is gone: %t", !c.gone)
			}
			if _, exists := f.target.value("a"); exists != c.exists {
				t.Errorf("the object exists: %t", exists)
			}
			if !c.gone && !strings.Contains(f.condition("m"), c.says) {
				t.Errorf("the condition is %s", f.condition("m"))
			}
			tells := strings.Contains(f.events(), "ObjectsGivenUp: Gave up objects that could not be reached, and may still exist: v1/ConfigMap/n/a")
			if want := c.gone && name == "MRX-25/it cannot be reached"; tells != want {
				t.Errorf("MRX-25: the Events are %q", f.events())
			}
		})
	}
}

// TestForcedGracePeriod: the shorter of two grace periods counts, each from the deletion of the object.
func TestForcedGracePeriod(t *testing.T) {
	for name, c := range map[string]struct {
		own   string
		force time.Duration
		want  time.Duration
	}{
		"MRX-24/neither":          {"", 0, 0},
		"MRX-24/only its own":     {"1h", 0, time.Hour},
		"MRX-24/only the forced":  {"", time.Minute, time.Minute},
		"MRX-24/its own earlier":  {"1s", time.Minute, time.Second},
		"MRX-24/the forced early": {"1h", time.Minute, time.Minute},
		"MRX-24/its own unread":   {"soon", time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{}}
			if c.own != "" {
				setAnnotation(resourcesv1alpha1.AnnotationFinalizeDeletionAfter, c.own)(live)
			}
			if got, err := (&pruner{force: c.force}).finalizeAfter(live); err != nil || got != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}
