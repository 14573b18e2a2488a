package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// MRB-39: the end of a run writes a condition of health no sooner than a second after the last time, and has it judged
// where it does not.
func TestEndOfARunKeepsTheBudgetOfHealth(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	healthy := func() resourcesv1alpha1.ConditionStatus {
		return meta.Conditions(f.get("m").Status.Conditions).Status(resourcesv1alpha1.ResourcesHealthy)
	}
	judge := func(status resourcesv1alpha1.ConditionStatus) {
		mr := f.get("m")
		_, err := f.Statuses.Update(f.ctx, steps.OwnerOf(mr), mr.UID, func(*resourcesv1alpha1.ManagedResource) *source.Change {
			return &source.Change{Judgements: []meta.ConditionChange{
				{Type: resourcesv1alpha1.ResourcesHealthy, Status: status, Reason: "R", Message: "M"}}}
		})
		f.must(err)
	}
	drift := func() {
		f.edited("a", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "edited", "data", "v")
		})
		f.complete("m")
	}
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	judge(resourcesv1alpha1.ConditionFalse)
	f.clock.SetTime(f.clock.Now().Add(300 * time.Millisecond))
	f.applied = 0
	if drift(); healthy() != resourcesv1alpha1.ConditionFalse || f.applied == 0 {
		t.Errorf("0.3 s later the end of a run makes ResourcesHealthy %s, and has it judged %d times", healthy(), f.applied)
	}
	f.clock.SetTime(f.clock.Now().Add(700 * time.Millisecond))
	f.applied = 0
	if drift(); healthy() != resourcesv1alpha1.ConditionTrue || f.applied != 0 {
		t.Errorf("a second later the end of a run makes ResourcesHealthy %s, judged %d times", healthy(), f.applied)
	}
}
