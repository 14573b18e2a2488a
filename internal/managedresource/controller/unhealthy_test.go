package controller

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestUnhealthyOf: what is not as it should be has a series, what is not known yet has none.
func TestUnhealthyOf(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1700000000, 0))
	for name, c := range map[string]struct {
		conditionType resourcesv1alpha1.ConditionType
		status        resourcesv1alpha1.ConditionStatus
		want          bool
	}{
		"applied":               {resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, false},
		"failing":               {resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionFalse, true},
		"a deletion that waits": {resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionProgressing, true},
		"healthy":               {resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, false},
		"not healthy":           {resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, true},
		"not looked at yet":     {resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionUnknown, false},
		"rolled out":            {resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, false},
		"rolling out":           {resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, true},
		"MRS-15: not ready":     {resourcesv1alpha1.Ready, resourcesv1alpha1.ConditionFalse, false},
		"MRS-15: ready":         {resourcesv1alpha1.Reconciling, resourcesv1alpha1.ConditionFalse, false},
		"MRS-15: not stalled":   {resourcesv1alpha1.Stalled, resourcesv1alpha1.ConditionFalse, false},
		"MRS-15: stalled":       {resourcesv1alpha1.Stalled, resourcesv1alpha1.ConditionTrue, false},
	} {
		t.Run(name, func(t *testing.T) {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
			mr.Status.Conditions = []resourcesv1alpha1.Condition{{Type: c.conditionType, Status: c.status, Reason: "Why", LastTransitionTime: at}}
			var want []unhealthy
			if c.want {
				want = []unhealthy{{[4]string{"a", "b", string(c.conditionType), "Why"}, 1700000000}}
			}
			if diff := cmp.Diff(want, unhealthyOf(mr), cmp.AllowUnexported(unhealthy{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPropertyUnhealthySeries: whatever a cache delivers, there are series of exactly what it has of the own class and is not as it should be.
func TestPropertyUnhealthySeries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		registry := prometheus.NewRegistry()
		handler := NewMetrics(registry).Follow(meta.NewClass("seed"))
		known := map[string]*resourcesv1alpha1.ManagedResource{}
		draw := func(name string) *resourcesv1alpha1.ManagedResource {
			mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
			mr.Spec.Class = ptr.To(rapid.SampledFrom([]string{"seed", "other"}).Draw(rt, "class"))
			for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
				if rapid.Bool().Draw(rt, "there") {
					mr.Status.Conditions = append(mr.Status.Conditions, resourcesv1alpha1.Condition{
						Type:               conditionType,
						Status:             resourcesv1alpha1.ConditionStatus(rapid.SampledFrom([]string{"True", "False", "Progressing", "Unknown"}).Draw(rt, "status")),
						Reason:             rapid.SampledFrom([]string{"X", "Y"}).Draw(rt, "reason"),
						LastTransitionTime: metav1.NewTime(time.Unix(rapid.Int64Range(1, 9).Draw(rt, "since"), 0)),
					})
				}
			}
			return mr
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "name")
			before := known[name]
			switch {
			case before == nil:
				known[name] = draw(name)
				handler.OnAdd(known[name], rapid.Bool().Draw(rt, "at the start"))
			case rapid.Bool().Draw(rt, "goes"):
				delete(known, name)
				if rapid.Bool().Draw(rt, "unseen") {
					handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/" + name, Obj: before})
				} else {
					handler.OnDelete(before)
				}
			default:
				known[name] = draw(name)
				handler.OnUpdate(before, known[name])
			}
			want := map[string]float64{}
			for mr := range maps.Values(known) {
				if *mr.Spec.Class == "seed" {
					for _, u := range unhealthyOf(mr) {
						want[fmt.Sprint(u.labels)] = u.since
					}
				}
			}
			expect.DeepEqual(rt, series(rt, registry), want)
		}
	})
}

// series are the values of the gauge by namespace, name, condition and reason.
func series(t *rapid.T, registry *prometheus.Registry) map[string]float64 {
	families, err := registry.Gather()
	must.Succeed(t, err)
	all := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "espalier_managedresource_unhealthy_since_timestamp_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			all[fmt.Sprint([]string{labels["managedresource_namespace"], labels["name"], labels["condition"], labels["reason"]})] = metric.GetGauge().GetValue()
		}
	}
	return all
}
