package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MRF-10, MRF-11, MRF-13: through edits, holds, releases, restarts and the time that passes, drift is repaired if no hold is in force and not otherwise, and
// a hold ends to the nanosecond.
func TestPropertyOfHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		f.configure(func(o *Options) { o.AllowHolds = true })
		f.clock.SetTime(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
		f.managed("m")
		f.manifests("m", "1", configMap("a", "1", "labels: {l: ours}"))
		f.complete("m")
		value, label := "1", "ours"
		until := time.Time{}
		isHeld := func() bool { return f.clock.Now().Before(until) }
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			// An object that changes more often than in ten seconds, with nothing to be repaired, is looked at later (repairs.go).
			f.clock.SetTime(f.clock.Now().Add(10 * time.Second))
			switch step := rapid.SampledFrom([]string{"edit", "edit", "hold", "release", "wait", "end", "restart"}).Draw(rt, "step"); step {
			case "edit":
				value, label = fmt.Sprint("v", i), fmt.Sprint("l", i)
				f.edited("a", func(o *unstructured.Unstructured) { setValue(value)(o); setLabel(label)(o) })
			case "hold":
				until = f.clock.Now().Add(time.Duration(rapid.IntRange(1, 180).Draw(rt, "minutes")) * time.Minute)
				f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationLeaveAloneUntil, until.Format(time.RFC3339)))
			case "release":
				until = time.Time{}
				f.edited("a", func(o *unstructured.Unstructured) {
					annotations := o.GetAnnotations()
					delete(annotations, resourcesv1alpha1.AnnotationLeaveAloneUntil)
					o.SetAnnotations(annotations)
				})
			case "wait":
				f.clock.SetTime(f.clock.Now().Add(time.Duration(rapid.IntRange(11, 90).Draw(rt, "minutes")) * time.Minute))
			case "end":
				if f.clock.Now().Before(until) { // The last moment at which it is in force, and the next one.
					f.clock.SetTime(until.Add(-time.Nanosecond))
					f.check(rt, value, label, isHeld)
					f.clock.SetTime(until)
				}
			case "restart":
				f.restart("m")
			}
			value, label = f.check(rt, value, label, isHeld)
		}
	})
}

// check does what is due, and compares the object with what it is to be: the edit during a hold, else what the manifest says.
func (f *fixture) check(rt *rapid.T, value, label string, isHeld func() bool) (string, string) {
	if !isHeld() {
		value, label = "1", "ours"
	}
	f.triggers.endHolds()
	f.complete("m")
	got, _ := f.target.value("a")
	if is := f.live("a").GetLabels()["l"]; got != value || is != label {
		rt.Fatalf("MRF-10: the value is %s, want %s; the label is %s, want %s", got, value, is, label)
	}
	return value, label
}
