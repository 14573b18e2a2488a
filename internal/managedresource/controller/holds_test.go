package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/test/expect"
)

// heldFixture has ManagedResource m with ConfigMaps a and b, which watches cover, and allows holds.
func heldFixture(t *testing.T, change ...func(*config.ManagedResourceControllerConfig)) *fixture {
	t.Helper()
	f := newFixture(t, change...)
	f.configure(func(o *Options) { o.AllowHolds = true })
	f.clock.SetTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	f.watch()
	f.managed("m")
	f.manifests("m", "1", configMap("a", "1", "labels: {l: ours}"), configMap("b", "1", ""))
	f.rest("m")
	return f
}

// hold sets a hold on a live object for a time, together with an edit.
func (f *fixture) hold(name string, lasts time.Duration, edits ...func(*unstructured.Unstructured)) {
	f.edited(name, func(o *unstructured.Unstructured) {
		setAnnotation(resourcesv1alpha1.AnnotationLeaveAloneUntil, f.clock.Now().Add(lasts).Format(time.RFC3339))(o)
		for _, edit := range edits {
			edit(o)
		}
	})
	f.complete("m")
}

// annotated sets annotations of ManagedResource m as a user would, and reports it as a watch does.
func (f *fixture) annotated(annotations map[string]string) {
	f.Helper()
	before := f.get("m")
	after := before.DeepCopy()
	after.Annotations = annotations
	f.must(f.source.Update(f.ctx, after))
	f.Triggers.onManagedResourceChanged(before, f.get("m"))
	f.complete("m")
}

// passes lets time pass, and does what is due then.
func (f *fixture) passes(d time.Duration) {
	f.Helper()
	f.clock.SetTime(f.clock.Now().Add(d))
	f.triggers.endHolds()
	f.complete("m")
}

func (f *fixture) wants(what, rule, name, value string) {
	f.Helper()
	if got, _ := f.target.value(name); got != value {
		f.Errorf("%s: %s %s is %q, want %q", rule, what, name, got, value)
	}
}

func (f *fixture) isHeld(name string) bool {
	_, found := f.live(name).GetAnnotations()[resourcesv1alpha1.AnnotationLeaveAloneUntil]
	return found
}

// MRF-10, MRF-13, MRF-14: what is held stays to the second, what is not is repaired, and people are told of both ends.
func TestHoldOnAnObject(t *testing.T) {
	f := heldFixture(t)
	f.hold("a", 2*time.Hour, setValue("emergency"))
	f.edited("b", setValue("theirs"))
	f.complete("m")
	f.wants("held", "MRF-10", "a", "emergency")
	f.wants("not held", "MRF-10", "b", "1")
	expect.Contains(t, f.events(), "HoldBegan: v1/ConfigMap/n/a is left alone until 2026-11-24T14:00:00Z", "MRF-14: events")
	expect.Equal(t, f.condition("m"), "True/ApplySucceeded: All resources are applied. Left alone for a while: ConfigMap n/a.",
		"MRF-14")
	got := total(t, f.Metrics.held)
	expect.Equal(t, got, 1, "MRF-14: %v holds", got)
	expect.Equal(t, int64(total(t, f.Metrics.heldUntil)), f.clock.Now().Add(2*time.Hour).Unix(), "MRF-14: ends at")
	f.rest("m")
	f.edited("a", setValue("emergency, again"))
	f.rest("m")
	f.passes(2*time.Hour - time.Nanosecond)
	f.wants("a moment before the end", "MRF-13", "a", "emergency, again")
	f.clock.SetTime(f.clock.Now().Add(time.Nanosecond))
	next := f.triggers.endHolds()
	expect.True(t, next == 0 && !f.nothingIsOutOfSync("m"), "MRF-13: nothing is due at the end; next in %s", next)
	f.complete("m")
	f.wants("at the end", "MRF-13", "a", "1")
	expect.False(t, f.isHeld("a"), "MRF-13: the annotation stays")
	if got := f.events(); strings.Count(got, "HoldEnded: The hold on v1/ConfigMap/n/a ended, and it was repaired at data.v") != 1 || strings.Count(got, "HoldBegan") != 1 {
		t.Errorf("MRF-14: events: %s", got)
	}
	if got := f.condition("m"); got != "True/ApplySucceeded: All resources are applied." || total(t, f.Metrics.held)+total(t, f.Metrics.heldUntil) != 0 {
		t.Errorf("MRF-14: %s; %v holds", got, total(t, f.Metrics.held))
	}
}

// MRF-13: whatever ends a hold, the object is repaired at once, also while repairs of drift are delayed or another writer keeps changing it.
func TestHoldThatEndsIsRepairedAtOnce(t *testing.T) {
	for name, ends := range map[string]func(f *fixture){
		"MRF-13/its time":       func(f *fixture) { f.passes(2 * time.Hour) },
		"MRF-13/it is released": func(f *fixture) { f.edited("a", removeHold) },
		"MRF-13/it is refused from now on": func(f *fixture) {
			f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationLeaveAloneUntil, "tomorrow"))
		},
		"MRF-13/it does not count any more": func(f *fixture) { f.annotated(map[string]string{resourcesv1alpha1.AnnotationAllowHolds: "false"}) },
		"MRF-13/it is released with an edit": func(f *fixture) {
			f.edited("a", func(o *unstructured.Unstructured) { removeHold(o); setValue("again")(o) })
		},
	} {
		for what, fights := range map[string]bool{"": false, " during a fight": true} {
			t.Run(name+what, func(t *testing.T) {
				f := heldFixture(t, func(cfg *config.ManagedResourceControllerConfig) {
					if !fights {
						cfg.DriftRepairDelay = &metav1.Duration{Duration: 3 * time.Hour}
					}
				})
				for i := range 12 {
					if fights {
						f.edited("a", setValue(fmt.Sprint("theirs ", i)))
						f.complete("m")
					}
				}
				f.passes(time.Minute)
				f.hold("a", 2*time.Hour, setValue("emergency"))
				f.passes(time.Minute)
				f.wants("held", "MRF-10", "a", "emergency")
				ends(f)
				f.complete("m")
				f.wants("at the end", "MRF-13", "a", "1")
			})
		}
	}
}

func removeHold(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	for _, name := range hold.Annotations {
		delete(annotations, name)
	}
	o.SetAnnotations(annotations)
}

func setLabel(value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		labels["l"] = value
		o.SetLabels(labels)
	}
}

// MRF-10, MRF-12: a hold covers the whole object except for the label and the origin by which ManagedResources know it.
func TestWhatAHoldCovers(t *testing.T) {
	f := heldFixture(t)
	f.hold("a", time.Hour, setValue("theirs"), setLabel("theirs"), func(o *unstructured.Unstructured) {
		labels := o.GetLabels()
		delete(labels, resourcesv1alpha1.LabelManagedBy)
		o.SetLabels(labels)
		setAnnotation(resourcesv1alpha1.AnnotationOrigin, "theirs")(o)
	})
	f.wants("held", "MRF-10", "a", "theirs")
	live := f.live("a")
	expect.Equal(t, live.GetLabels()["l"], "theirs", "MRF-10: the label")
	if live.GetLabels()[resourcesv1alpha1.LabelManagedBy] != "gardener" || live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != "n/m" || !f.isHeld("a") {
		t.Errorf("MRF-12: labels %v, annotations %v", live.GetLabels(), live.GetAnnotations())
	}
	f.passes(time.Hour)
	f.wants("at the end", "MRF-13", "a", "1")
	expect.Equal(t, f.live("a").GetLabels()["l"], "ours", "MRF-13: the label")
}

// MRF-10, MRF-13: what else happens while an object is held, and to the hold.
func TestDuringAHold(t *testing.T) {
	for name, tc := range map[string]struct {
		config  func(*config.ManagedResourceControllerConfig)
		happens func(*fixture)
		during  string
	}{
		"MRF-10/the manifest changes": {happens: func(f *fixture) {
			f.manifests("m", "2", configMap("a", "1", "labels: {l: new}"), configMap("b", "1", ""))
		}, during: "emergency"},
		"MRF-10/somebody asks for a run": {happens: func(f *fixture) {
			f.annotated(map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile})
		}, during: "emergency"},
		"MRF-10/alwaysUpdate": {config: func(c *config.ManagedResourceControllerConfig) { c.AlwaysUpdate = ptr.To(true) }, happens: func(f *fixture) {
			f.annotated(map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationReconcile})
		}, during: "emergency"},
		"MRF-10/forceOverwriteAnnotations": {happens: func(f *fixture) {
			f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.ForceOverwriteAnnotations = ptr.To(true) })
		}, during: "emergency"},
		"MRF-11/a restart":          {happens: func(f *fixture) { f.restart("m") }, during: "emergency"},
		"MRF-13/a delay of repairs": {config: delayed, happens: func(*fixture) {}, during: "emergency"},
		"MRF-13/many edits": {happens: func(f *fixture) {
			for range 3 * burst {
				f.edited("a", setValue("emergency"))
				f.edited("a", setValue("more"))
				f.edited("a", setValue("emergency"))
				f.complete("m")
			}
		}, during: "emergency"},
		"MRF-13/it is released": {happens: func(f *fixture) {
			f.edited("a", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				delete(annotations, resourcesv1alpha1.AnnotationLeaveAloneUntil)
				o.SetAnnotations(annotations)
			})
		}, during: "1"},
		"MRF-13/it is prolonged": {happens: func(f *fixture) {
			f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationLeaveAloneUntil, f.clock.Now().Add(2*time.Hour).Format(time.RFC3339)))
			f.complete("m")
			f.passes(time.Hour)
			f.wants("prolonged", "MRF-13", "a", "emergency")
		}, during: "emergency"},
		"MRF-10/the object is deleted": {happens: func(f *fixture) {
			f.target.remove("a")
			f.Tracker.MarkOutOfSync(configMapKey("a"))
		}, during: "1"},
		"MRF-16/an update is refused that would have it replaced": {happens: func(f *fixture) {
			f.refuse(http.MethodPut, "a", http.StatusUnprocessableEntity)
			f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationOrigin, "theirs")) // MRF-12: a hold does not cover it.
			uid := f.uid("a")
			_, err := f.run("m")
			expect.True(f, f.uid("a") == uid && err != nil && strings.Contains(err.Error(), "because it has a hold until"),
				"MRF-16: replaced: %v", err)
			f.refuse("", "", 0)
		}, during: "emergency"},
	} {
		t.Run(name, func(t *testing.T) {
			change := tc.config
			if change == nil {
				change = func(*config.ManagedResourceControllerConfig) {}
			}
			f := heldFixture(t, change)
			f.hold("a", time.Hour, setValue("emergency"))
			tc.happens(f)
			f.complete("m")
			f.wants("during", strings.Split(name, "/")[0], "a", tc.during)
			f.passes(time.Hour)
			f.wants("at the end", "MRF-13", "a", "1")
			expect.False(t, f.isHeld("a"), "MRF-13: the annotation stays")
		})
	}
}

// MRF-11: what cannot be read, or would last for too long, is refused, removed and told of.
func TestHoldsThatAreRefused(t *testing.T) {
	for name, set := range map[string]func(*fixture){
		"MRF-11/longer than a day": func(f *fixture) { f.hold("a", 25*time.Hour, setValue("theirs")) },
		"MRF-11/no time": func(f *fixture) {
			f.edited("a", func(o *unstructured.Unstructured) {
				setAnnotation(resourcesv1alpha1.AnnotationLeaveAloneUntil, "tomorrow")(o)
				setValue("theirs")(o)
			})
			f.complete("m")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := heldFixture(t)
			set(f)
			f.wants("refused", "MRF-11", "a", "1")
			if got := f.events(); f.isHeld("a") || !strings.Contains(got, "HoldRefused: The hold on v1/ConfigMap/n/a was refused and removed: annotation resources.gardener.cloud/leave-alone-") {
				t.Errorf("held %t; events: %s", f.isHeld("a"), got)
			}
		})
	}
}

// MRF-15: who may write an object has it left alone only where that is allowed.
func TestWhoMayHold(t *testing.T) {
	for name, tc := range map[string]struct {
		configured bool
		annotation string
		want       bool
	}{
		"MRF-15/the configuration allows":         {configured: true, want: true},
		"MRF-15/the configuration does not":       {},
		"MRF-15/the ManagedResource allows":       {annotation: "true", want: true},
		"MRF-15/the ManagedResource does not":     {configured: true, annotation: "false"},
		"MRF-15/the ManagedResource says nothing": {configured: true, annotation: "perhaps", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := heldFixture(t)
			f.configure(func(o *Options) { o.AllowHolds = tc.configured })
			if tc.annotation != "" {
				f.annotated(map[string]string{resourcesv1alpha1.AnnotationAllowHolds: tc.annotation})
			}
			f.hold("a", time.Hour, setValue("theirs"))
			if tc.want {
				f.wants("allowed", "MRF-15", "a", "theirs")
				return
			}
			f.wants("forbidden", "MRF-15", "a", "1")
			if got := f.events(); !strings.Contains(got, "HoldRefused: v1/ConfigMap/n/a was repaired in spite of its annotation") || !f.isHeld("a") || total(t, f.Metrics.held) != 0 {
				t.Errorf("the annotation stays: %t; events: %s", f.isHeld("a"), got)
			}
		})
	}
}

// MRF-10, MRF-12, MRF-16: a hold on the ManagedResource covers all its objects, also where those who write them may not hold any. A deleted object stays
// away, a new one is created, and one that no manifest has any more is deleted.
func TestHoldOnAManagedResource(t *testing.T) {
	for _, restart := range []bool{false, true} {
		f := heldFixture(t)
		f.configure(func(o *Options) { o.AllowHolds = false })
		until := f.clock.Now().Add(time.Hour).Format(time.RFC3339)
		f.annotated(map[string]string{resourcesv1alpha1.AnnotationLeaveAloneUntil: until, resourcesv1alpha1.AnnotationLeaveAloneReason: "ticket 5"})
		if got := f.condition("m"); got != "True/ApplySucceeded: All resources are applied. The ManagedResource is left alone for a while." {
			t.Errorf("MRF-14: %s", got)
		}
		f.edited("a", setValue("emergency"))
		f.target.remove("b")
		f.Tracker.MarkOutOfSync(configMapKey("b"))
		f.complete("m")
		if restart {
			f.restart("m")
			f.complete("m")
		}
		f.manifests("m", "2", configMap("a", "2", ""), configMap("b", "2", ""), configMap("new", "2", ""))
		f.complete("m")
		f.wants("held", "MRF-10", "a", "emergency")
		f.wants("new", "MRF-12", "new", "2")
		expect.False(t, expect.OK(f.target.value("b")), "MRF-12: what was deleted is there again")
		if got := f.events(); !strings.Contains(got, `HoldBegan: The objects are left alone until 2026-11-24T13:00:00Z, for the reason "ticket 5"`) || total(t, f.Metrics.held) != 1 {
			t.Errorf("MRF-14: %v holds; events: %s", total(t, f.Metrics.held), got)
		}
		f.manifests("m", "3", configMap("a", "2", ""), configMap("b", "2", ""))
		f.complete("m")
		expect.False(t, expect.OK(f.target.value("new")), "MRF-16: what no manifest has any more is still there")
		f.passes(time.Hour)
		f.complete("m")
		f.wants("at the end", "MRF-13", "a", "2")
		f.wants("at the end", "MRF-13", "b", "2")
		if annotations := f.get("m").Annotations; len(annotations) > 0 || !strings.Contains(f.events(), "HoldEnded: The hold ended") || total(t, f.Metrics.held) != 0 {
			t.Errorf("MRF-13: annotations %v; events: %s", annotations, f.events())
		}
		expect.Equal(t, f.condition("m"), "True/ApplySucceeded: All resources are applied.", "MRF-14")
	}
}

// MRF-11, MRF-13: a hold on a ManagedResource that is refused, or that is released.
func TestHoldOnAManagedResourceEndsEarly(t *testing.T) {
	f := heldFixture(t)
	f.annotated(map[string]string{resourcesv1alpha1.AnnotationLeaveAloneUntil: f.clock.Now().Add(48 * time.Hour).Format(time.RFC3339)})
	f.edited("a", setValue("theirs"))
	f.complete("m")
	f.wants("refused", "MRF-11", "a", "1")
	if len(f.get("m").Annotations) > 0 || !strings.Contains(f.events(), "HoldRefused: The hold was refused and removed: annotation resources.gardener.cloud/leave-alone-until: is more than 24h0m0s away") {
		t.Errorf("MRF-11: annotations %v; events: %s", f.get("m").Annotations, f.events())
	}
	f.clock.SetTime(f.clock.Now().Add(time.Second)) // Events are named by their time.
	f.annotated(map[string]string{resourcesv1alpha1.AnnotationLeaveAloneUntil: f.clock.Now().Add(time.Hour).Format(time.RFC3339)})
	f.edited("a", setValue("theirs"))
	f.complete("m")
	f.wants("held", "MRF-10", "a", "theirs")
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	f.annotated(nil)
	f.wants("released", "MRF-13", "a", "1")
	expect.Contains(t, f.events(), "HoldReleased: The objects are left alone no more", "MRF-14: events")
}

// MRF-16: a hold is about repairs. It keeps neither an object from being deleted that no manifest has any more, nor the ManagedResource.
func TestHoldsAndDeletion(t *testing.T) {
	f := heldFixture(t)
	f.hold("a", time.Hour, setValue("emergency"))
	f.manifests("m", "2", configMap("b", "1", ""))
	gone := func(name string) func() bool {
		return func() bool {
			_, _ = f.run("m")
			_, there := f.target.value(name)
			return !there && total(t, f.Metrics.held) == 0
		}
	}
	poll(t, "MRF-16: an object is gone that no manifest has any more", gone("a"))
	f.hold("b", time.Hour, setValue("emergency"))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	poll(t, "MRF-16: the objects of a ManagedResource that was deleted are gone", gone("b"))
}

// MRF-13: the sweep looks at the end of a hold by itself.
func TestSweepEndsHolds(t *testing.T) {
	f := heldFixture(t)
	f.hold("a", time.Hour, setValue("emergency"))
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	ctx, cancel := context.WithCancel(f.ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.triggers.Sweep(ctx) }()
	poll(t, "MRF-13: the object is looked at", func() bool { return !f.nothingIsOutOfSync("m") })
	cancel()
	f.must(<-ended)
}
