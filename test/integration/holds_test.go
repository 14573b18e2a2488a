package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// edit changes an object of the target as somebody would who reads it, changes it and writes it back.
func (f *fixture) edit(apiVersion, kind, name string, change func(*unstructured.Unstructured)) {
	f.Helper()
	f.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := f.get(apiVersion, kind, name)
		change(object)
		return f.shoot.Update(f.ctx, object)
	}))
}

// MRF-10, MRF-13, MRF-14, MRF-15: a hold on a live object of a real API server, from its annotation to its end.
func TestHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", deployment("d", ""))
	f.settled("mr")
	hold := func(until time.Time) {
		f.edit("apps/v1", "Deployment", "d", func(d *unstructured.Unstructured) {
			annotations := d.GetAnnotations()
			annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil] = until.UTC().Format(time.RFC3339)
			annotations[resourcesv1alpha1.AnnotationLeaveAloneReason] = "ticket 5"
			d.SetAnnotations(annotations)
			_ = unstructured.SetNestedField(d.Object, int64(2), "spec", "replicas")
		})
	}
	repaired := func() error {
		if d := f.get("apps/v1", "Deployment", "d"); nested(d, "spec", "replicas") != "0" {
			return fmt.Errorf("MRF-13: not repaired: %v", d.Object["spec"])
		}
		return nil
	}
	hold(time.Now().Add(time.Hour))
	f.eventually(repaired) // MRF-15: the target is not the source.
	f.annotateMR("mr", resourcesv1alpha1.AnnotationAllowHolds, "true")
	f.patch(f.get("apps/v1", "Deployment", "d"), map[string]any{"metadata": map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationLeaveAloneUntil: nil}}})
	f.settled("mr")

	until := time.Now().Add(8 * time.Second).Truncate(time.Second)
	hold(until)
	f.applied("mr", "True/ApplySucceeded", "Left alone for a while: Deployment "+f.ns+"/d.")
	if got := nested(f.get("apps/v1", "Deployment", "d"), "spec", "replicas"); got != "2" && time.Now().Before(until) {
		t.Errorf("MRF-10: the replicas are %s", got)
	}
	f.eventually(repaired)
	if late := time.Since(until); late < 0 || late > 2*time.Second {
		t.Errorf("MRF-13: repaired %s after the end", late)
	}
	if annotations := f.get("apps/v1", "Deployment", "d").GetAnnotations(); annotations[resourcesv1alpha1.AnnotationLeaveAloneUntil] != "" {
		t.Errorf("MRF-13: annotations %v", annotations)
	}
	f.eventually(func() error {
		events := &corev1.EventList{}
		if err := f.seed.List(f.ctx, events, client.InNamespace(f.ns)); err != nil {
			return err
		}
		told := map[string]string{}
		for i := range events.Items {
			told[events.Items[i].Reason] = events.Items[i].Message
		}
		if !strings.Contains(told["HoldBegan"], `for the reason "ticket 5", set by "`) || !strings.Contains(told["HoldEnded"], "at spec.replicas") || told["HoldRefused"] == "" {
			return fmt.Errorf("MRF-14: %v", told)
		}
		return nil
	})
}
