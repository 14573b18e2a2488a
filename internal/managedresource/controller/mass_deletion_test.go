package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func waits(wait time.Duration) func(*config.ManagedResourceControllerConfig) {
	return func(c *config.ManagedResourceControllerConfig) {
		c.MassDeletion.Wait = &metav1.Duration{Duration: wait}
	}
}

// brakeFixture has ManagedResource m with n ConfigMaps.
func brakeFixture(t *testing.T, n int, wait time.Duration) *fixture {
	t.Helper()
	f := newFixture(t, waits(wait))
	f.clock.SetTime(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	f.apply("m", entries("a", n)...)
	return f
}

func entries(prefix string, n int) (entries []string) {
	for i := range n {
		entries = append(entries, fmt.Sprintf("%s%02d=1", prefix, i))
	}
	return entries
}

func setFinalizer(o *unstructured.Unstructured) { o.SetFinalizers([]string{"x/y"}) }

func (f *fixture) present() (names []string) {
	f.target.mu.Lock()
	defer f.target.mu.Unlock()
	for name := range f.target.objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// asked returns the checksum that the condition asks to be confirmed.
func (f *fixture) asked() string {
	_, message, _ := strings.Cut(f.condition("m"), ": ")
	return brake.ChecksumIn(message)
}

func (f *fixture) massDeletions(result string) float64 {
	f.Helper()
	metric := &dto.Metric{}
	f.must(f.Metrics.apply.MassDeletions.WithLabelValues(result).Write(metric))
	return metric.GetCounter().GetValue()
}

func TestMassDeletionWaits(t *testing.T) {
	t.Parallel()
	f := brakeFixture(t, 12, 10*time.Minute)
	f.secret("m", "2", "new=1")
	result, err := f.run("m")
	expect.True(t, err == nil && result.RequeueAfter == time.Minute, "MRX-21: the run ends with %v, %v", result, err)
	const want = "False/DeletionHeld: The deletion of 12 of 12 objects that no manifest has any more waits, because they are half or more of the objects: v1/ConfigMap/n/a00, "
	got := f.condition("m")
	expect.True(t, strings.HasPrefix(got, want), "MRX-21: the condition is %s", got)
	expect.Contains(t, f.events(), "DeletionHeld: The deletion of 12", "MRX-21: no Event tells")
	f.sees(9 * time.Minute)
	f.restart("m")
	f.sees(9 * time.Minute)
	if got := len(f.present()); got != 12 || f.target.count(http.MethodDelete) > 0 {
		t.Errorf("T4-9/MRX-21: %d objects are left, and %d deletions were sent", got, f.target.count(http.MethodDelete))
	}
	f.sees(time.Minute)
	if got := fmt.Sprint(f.present()); got != "[new]" {
		t.Errorf("MRX-21: after the wait there are %s: %s", got, f.condition("m"))
	}
	for result, want := range map[string]float64{"held": 1, "elapsed": 1, "confirmed": 0, "observed": 0} {
		expect.Equal(t, f.massDeletions(result), want, "MRX-23: %s counts", result)
	}
}

// sees has ManagedResource m run once a minute for a while.
func (f *fixture) sees(while time.Duration) {
	f.Helper()
	for f.complete("m"); while > 0; while -= time.Minute {
		f.clock.SetTime(f.clock.Now().Add(time.Minute))
		f.complete("m")
	}
}

// TestMassDeletion_Interrupted shows that time in which nobody could see the condition is no part of the wait.
func TestMassDeletion_Interrupted(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(f *fixture){
		"MRX-21/no run takes place for an hour": func(f *fixture) { f.clock.SetTime(f.clock.Now().Add(time.Hour)) },
		"MRX-21/the source does not answer": func(f *fixture) {
			for range 60 {
				f.clock.SetTime(f.clock.Now().Add(time.Minute))
				f.configure(func(o *Options) {
					o.Statuses = source.NewStatuses(f.source, unanswering{f.source}, f.source, f.clock, f.Events)
				})
				expect.Error(t, expect.ErrorOf(f.run("m")), "MRX-21: a run succeeds while the source does not answer")
			}
			f.configure(func(o *Options) { o.Statuses = source.NewStatuses(f.source, f.source, f.source, f.clock, f.Events) })
		},
		"MRX-21/the source is restored to an earlier state": func(f *fixture) {
			mr := f.get("m")
			mr.Status.Conditions = nil
			f.must(f.source.Status().Update(f.ctx, mr))
			f.clock.SetTime(f.clock.Now().Add(time.Minute))
		},
		"MRX-21/a clock was behind when the condition was written": func(f *fixture) {
			f.restart("m")
			f.setUpdateTime(f.clock.Now().Add(-time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := brakeFixture(t, 12, 10*time.Minute)
			f.secret("m", "2", "new=1")
			f.sees(5 * time.Minute)
			interrupt(f)
			f.sees(9 * time.Minute)
			must.Equal(t, len(f.present()), 12,
				"MRX-21: of 12 objects are left though their deletion waits: %s", f.condition("m"))
			f.sees(time.Minute)
			got := fmt.Sprint(f.present())
			expect.Equal(t, got, "[new]", "MRX-21: after the wait there are %s: %s", got, f.condition("m"))
		})
	}
}

// unanswering is an API server that gives no answer.
type unanswering struct{ client.Reader }

func (unanswering) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

// setUpdateTime sets lastUpdateTime of ResourcesApplied.
func (f *fixture) setUpdateTime(at time.Time) {
	f.Helper()
	mr := f.get("m")
	for i := range mr.Status.Conditions {
		mr.Status.Conditions[i].LastUpdateTime = metav1.NewTime(at)
	}
	f.must(f.source.Status().Update(f.ctx, mr))
}

// TestMassDeletion_OneOfTwoSecrets shows that the objects of one Secret wait though most objects stay.
func TestMassDeletion_OneOfTwoSecrets(t *testing.T) {
	t.Parallel()
	f := newFixture(t, waits(10*time.Minute))
	f.managed("m", entries("a", 30)...)
	f.secret("second", "1", entries("b", 12)...)
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.SecretRefs = append(mr.Spec.SecretRefs, corev1.LocalObjectReference{Name: "second"})
	})
	f.complete("m")
	f.secret("m", "2", entries("a", 21)...)
	f.complete("m")
	must.Equal(t, len(f.present()), 33, "MRX-20: objects are left after an ordinary deletion: %s", f.condition("m"))
	f.secret("second", "2")
	f.complete("m")
	if got := len(f.present()); got != 33 || !strings.Contains(f.condition("m"), "because they include all objects of Secret n/second: ") {
		t.Errorf("MRX-20: %d objects are left: %s", got, f.condition("m"))
	}
}

func TestMassDeletionIsConfirmed(t *testing.T) {
	t.Parallel()
	f := brakeFixture(t, 10, 10*time.Minute)
	f.secret("m", "2", "b=1")
	f.complete("m")
	before := f.get("m")
	f.annotated(map[string]string{resourcesv1alpha1.AnnotationConfirmDeletion: "0123456789ab"})
	expect.Equal(t, len(f.present()), 10, "MRX-22: a confirmation of other objects leaves")
	// One object holds out: the annotation stays in force though the condition says something else.
	f.edited("a00", setFinalizer)
	f.annotated(map[string]string{resourcesv1alpha1.AnnotationConfirmDeletion: f.asked()})
	expect.True(t, confirmsDeletion(before, f.get("m")), "MRX-22: the annotation asks for no run")
	if got := fmt.Sprint(f.present()); got != "[a00]" || !strings.HasPrefix(f.condition("m"), "Progressing/DeletionPending") {
		t.Errorf("MRX-22: %s are left, and the condition is %s", got, f.condition("m"))
	}
	f.restart("m")
	f.complete("m")
	if got := f.condition("m"); !strings.HasPrefix(got, "Progressing/DeletionPending") {
		t.Errorf("MRX-22: after a restart the condition is %s", got)
	}
	f.target.remove("a00")
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.complete("m")
	f.secret("m", "3", "b=2")
	f.complete("m")
	if got := f.get("m").Annotations; len(got) > 0 || fmt.Sprint(f.present()) != "[b]" {
		t.Errorf("MRX-22: the annotations are %v, and the objects %v", got, f.present())
	}
}

// TestConfirmationIsForOneDeletion: manifests that come back and vanish again wait anew, without a run between that had nothing to delete.
func TestConfirmationIsForOneDeletion(t *testing.T) {
	t.Parallel()
	f := brakeFixture(t, 10, 10*time.Minute)
	f.secret("m", "2", "b=1")
	f.complete("m")
	f.annotated(map[string]string{resourcesv1alpha1.AnnotationConfirmDeletion: f.asked()})
	f.secret("m", "3", entries("a", 10)...)
	f.complete("m")
	f.secret("m", "4", "b=1")
	f.complete("m")
	if got := len(f.present()); got != 10 || f.asked() == "" {
		t.Errorf("MRX-22: %d objects are left by a confirmation of their first deletion: %s", got, f.condition("m"))
	}
}

func TestMassDeletionIsObserved(t *testing.T) {
	t.Parallel()
	f := brakeFixture(t, 10, 0)
	f.edited("a00", setFinalizer)
	f.secret("m", "2")
	for range 3 {
		f.complete("m")
	}
	expect.Equal(t, fmt.Sprint(f.present()), "[a00]", "T4-9/MRX-23: it waits")
	got := f.massDeletions("observed")
	expect.Equal(t, got, 1, "MRX-23: it counts %v times", got)
	if events := f.events(); strings.Count(events, "MassDeletion: Deleting 10 of 10 objects that no manifest has any more: v1/ConfigMap/n/a00, ") != 1 {
		t.Errorf("MRX-23: the Events are %s", events)
	}
}

func TestDeletionsThatNeverWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(f *fixture)
		left int
	}{
		"MRX-20/more than half stay":              {func(f *fixture) { f.secret("m", "2", entries("a", 7)...) }, 7},
		"MRX-20/the ManagedResource is deleted":   {func(f *fixture) { f.must(f.source.Delete(f.ctx, f.get("m"))) }, 0},
		"MRX-20/another ManagedResource has them": {func(f *fixture) { f.managed("z", entries("a", 12)...); f.complete("z"); f.secret("m", "2") }, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := brakeFixture(t, 12, 10*time.Minute)
			c.act(f)
			f.complete("m")
			expect.Equal(t, len(f.present()), c.left, "objects are left")
			expect.Equal(t, f.massDeletions("held"), 0, "the deletion waited")
		})
	}
}

// TestPropertyOfMassDeletion: whatever happens to the manifests, and whenever a process restarts, no set of many objects is deleted that was neither confirmed nor
// waited for; and each set is deleted as soon as one of both holds.
func TestPropertyOfMassDeletion(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Minute
	rapid.Check(t, func(rt *rapid.T) {
		f := brakeFixture(t, 12, wait)
		wanted, kept, version := entries("a", 12), entries("a", 12), 1
		var lost, confirmed string
		var since time.Time
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			switch step := rapid.SampledFrom([]string{"manifests", "manifests", "wait", "wait", "confirm", "confirm another", "restart"}).Draw(rt, "step"); step {
			case "manifests":
				wanted = entries(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "prefix"), rapid.SampledFrom([]int{0, 1, 12, 13}).Draw(rt, "n"))
				version++
				f.secret("m", fmt.Sprint(version), wanted...)
			case "wait":
				f.sees(time.Duration(rapid.IntRange(1, 10).Draw(rt, "minutes")) * time.Minute)
			case "confirm", "confirm another":
				checksum := f.asked()
				if step != "confirm" {
					checksum = "0123456789ab"
				} else if lost != "" {
					confirmed = lost
				}
				f.annotated(map[string]string{resourcesv1alpha1.AnnotationConfirmDeletion: checksum})
			case "restart":
				f.restart("m")
				since = f.clock.Now()
			}
			f.complete("m")
			gone := slices.DeleteFunc(slices.Clone(kept), func(entry string) bool { return slices.Contains(wanted, entry) })
			if set := fmt.Sprint(gone); len(gone) >= 10 && 2*len(gone) >= len(kept) {
				if set != lost {
					lost, since, confirmed = set, f.clock.Now(), ""
				}
				if confirmed != lost && f.clock.Since(since) < wait {
					if got := f.present(); len(got) != len(kept) || f.asked() == "" {
						rt.Fatalf("MRX-21: %d of %d objects are left though their deletion waits: %s", len(got), len(kept), f.condition("m"))
					}
					continue
				}
			}
			lost, kept = "", wanted
			if got := f.present(); len(got) != len(wanted) || !strings.HasPrefix(f.condition("m"), "True/") {
				rt.Fatalf("MRX-22: there are %v, want %v: %s", got, wanted, f.condition("m"))
			}
		}
	})
}
