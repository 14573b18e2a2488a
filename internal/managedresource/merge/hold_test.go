package merge

import (
	"testing"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/test/expect"
)

const (
	heldUntil  = resourcesv1alpha1.AnnotationLeaveAloneUntil
	heldReason = resourcesv1alpha1.AnnotationLeaveAloneReason
)

// TestMerge_LeavesHeldObjects asserts the fields and annotations of an object that is held (MRF-10 … MRF-13).
func TestMerge_LeavesHeldObjects(t *testing.T) {
	until := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	const desired = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {ours: new, " + resourcesv1alpha1.LabelManagedBy + ": gardener}, annotations: {ours: new}}\ndata: {a: new, b: new}\n"
	live := func(metadata string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, resourceVersion: '1', managedFields: [{manager: x}]" + metadata + "}\ndata: {a: old, b: old}\n"
	}
	const held, repaired = "{a: old, b: old}", "{a: new, b: new}"
	annotated := live(", labels: {theirs: x}, annotations: {theirs: x, " + heldUntil + ": T, " + heldReason + ": R}")
	managed := map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"}
	for name, c := range map[string]struct {
		live                string
		effect              hold.Effect
		data                string
		labels, annotations map[string]string
	}{
		"MRF-12/in force, without metadata": {live(""), hold.Effect{Until: until}, held, managed, nil},
		"MRF-12/in force": {annotated, hold.Effect{Until: until}, held,
			map[string]string{"theirs": "x", resourcesv1alpha1.LabelManagedBy: "gardener"}, map[string]string{"theirs": "x", heldUntil: "T", heldReason: "R"}},
		"MRF-13/its own hold is over, that of the ManagedResource is in force": {annotated, hold.Effect{Until: until, RemovesAnnotations: true}, held,
			map[string]string{"theirs": "x", resourcesv1alpha1.LabelManagedBy: "gardener"}, map[string]string{"theirs": "x"}},
		"MRF-13/over": {annotated, hold.Effect{RemovesAnnotations: true}, repaired,
			map[string]string{"theirs": "x", "ours": "new", resourcesv1alpha1.LabelManagedBy: "gardener"}, map[string]string{"theirs": "x", "ours": "new"}},
		"MRF-13/over, without annotations": {live(""), hold.Effect{RemovesAnnotations: true}, repaired,
			map[string]string{"ours": "new", resourcesv1alpha1.LabelManagedBy: "gardener"}, map[string]string{"ours": "new"}},
		"MRF-15/one that does not count": {annotated, hold.Effect{}, repaired,
			map[string]string{"theirs": "x", "ours": "new", resourcesv1alpha1.LabelManagedBy: "gardener"}, map[string]string{"theirs": "x", "ours": "new", heldUntil: "T", heldReason: "R"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := fromYAML(t, c.live)
			merged := Merge(desiredFrom(t, desired), before, Options{Hold: c.effect, Origin: "o"})
			want := map[string]string{resourcesv1alpha1.AnnotationOrigin: "o"}
			for key, value := range c.annotations {
				want[key] = value
			}
			if _, described := merged.GetAnnotations()[resourcesv1alpha1.AnnotationDescription]; described {
				want[resourcesv1alpha1.AnnotationDescription] = merged.GetAnnotations()[resourcesv1alpha1.AnnotationDescription]
			}
			expect.DeepEqual(t, merged.GetAnnotations(), want, "annotations")
			expect.DeepEqual(t, merged.GetLabels(), c.labels, "labels")
			expect.DeepEqual(t, merged.Object["data"], fromYAML(t, "apiVersion: v1\nkind: ConfigMap\ndata: "+c.data).Object["data"], "data")
			expect.True(t, len(merged.GetManagedFields()) == 0 && merged.GetResourceVersion() == "1",
				"metadata: %v", merged.Object["metadata"])
			expect.DeepEqual(t, before, fromYAML(t, c.live), "the live object changed")
		})
	}
}

// TestMerge_AddsNoLabelToHeldObjects: an object whose manifest has no label of ManagedResources gets none while it is held (MRF-12).
func TestMerge_AddsNoLabelToHeldObjects(t *testing.T) {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	desired := desiredFrom(t, manifest)
	desired.SetLabels(nil)
	expect.Empty(t, Merge(desired, fromYAML(t, manifest), Options{Hold: hold.Effect{Until: time.Unix(1, 0)}}).GetLabels(),
		"MRF-12: labels")
}
