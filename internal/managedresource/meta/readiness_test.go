package meta

import (
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// TestReadiness: the conditions of kstatus follow from the others, and are taken away again only if all three are there.
func TestReadiness(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	c, changed := Conditions(nil).WithReadiness(now, false)
	if !changed || c.Status(resourcesv1alpha1.Ready) != "Unknown" || c.Status(resourcesv1alpha1.Reconciling) != "True" || c.Status(resourcesv1alpha1.Stalled) != "False" {
		t.Errorf("T4-8: without other conditions: %v", c)
	}
	fine, _ := Conditions(nil).With(now,
		ConditionChange{resourcesv1alpha1.ResourcesHealthy, "True", "R", "m"}, ConditionChange{resourcesv1alpha1.ResourcesProgressing, "False", "R", "m"}, Applied("True", "R", "m"))
	ready, _ := fine.WithReadiness(now, false)
	if again, changed := ready.WithReadiness(now, false); changed || len(again) != 6 || again.Status(resourcesv1alpha1.Ready) != "True" {
		t.Errorf("T4-8, MRS-15: nothing changed, and it is written: %v", again)
	}
	without, changed := ready.WithoutReadiness()
	expect.True(t, changed && len(without) == 3 && without.Get(resourcesv1alpha1.Ready) == nil,
		"T4-8, MRS-15: switched off: %v", without)
	foreign, _ := fine.With(now, ConditionChange{resourcesv1alpha1.Ready, "True", "R", "m"})
	if left, changed := foreign.WithoutReadiness(); changed || len(left) != 4 {
		t.Errorf("T4-8, MRS-3: a condition of another writer: %v", left)
	}
}
