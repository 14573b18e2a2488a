package references

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// TestStandingOf: only a whole mark that was made of the object as it is marks the object, and it is due after the grace (GC-18, GC-19).
func TestStandingOf(t *testing.T) {
	const grace = time.Hour
	marked := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	written := metav1.NewTime(marked.Add(-time.Hour))
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		after  time.Duration
		want   Standing
		// isMarked reports whether there is something of a mark to remove.
		isMarked bool
	}{
		"T3-9/GC-18/just marked":     {func(*metav1.ObjectMeta) {}, 0, Waiting, true},
		"GC-18/almost due":           {func(*metav1.ObjectMeta) {}, grace - 1, Waiting, true},
		"GC-18/due":                  {func(*metav1.ObjectMeta) {}, grace, Due, true},
		"GC-18/another label":        {func(o *metav1.ObjectMeta) { o.Labels["a"] = "c" }, grace, Free, true},
		"GC-18/another annotation":   {func(o *metav1.ObjectMeta) { o.Annotations["a"] = "c" }, grace, Free, true},
		"GC-18/another finalizer":    {func(o *metav1.ObjectMeta) { o.Finalizers = []string{"x"} }, grace, Free, true},
		"GC-18/another owner":        {func(o *metav1.ObjectMeta) { o.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, grace, Free, true},
		"GC-18/somebody wrote to it": {func(o *metav1.ObjectMeta) { o.ManagedFields[0].Time = &metav1.Time{Time: marked} }, grace, Free, true},
		"GC-18/the collector did":    {func(o *metav1.ObjectMeta) { o.ManagedFields[1].Time = &metav1.Time{Time: marked} }, grace, Due, true},
		"GC-18/another time in the mark": {func(o *metav1.ObjectMeta) {
			o.Annotations[resourcesv1alpha1.AnnotationCondemnedAt] = "2025-01-01T00:00:00Z"
		}, grace, Free, true},
		"GC-18/no time in the mark":   {func(o *metav1.ObjectMeta) { delete(o.Annotations, resourcesv1alpha1.AnnotationCondemnedAt) }, grace, Free, true},
		"GC-18/no seal in the mark":   {func(o *metav1.ObjectMeta) { delete(o.Annotations, resourcesv1alpha1.AnnotationCondemnedAs) }, grace, Free, true},
		"GC-18/no label in the mark":  {func(o *metav1.ObjectMeta) { delete(o.Labels, resourcesv1alpha1.LabelCondemned) }, grace, Free, true},
		"GC-18/another label's value": {func(o *metav1.ObjectMeta) { o.Labels[resourcesv1alpha1.LabelCondemned] = "false" }, grace, Free, true},
		"GC-18/no mark":               {func(o *metav1.ObjectMeta) { o.Labels, o.Annotations = nil, nil }, grace, Free, false},
		"GC-18/nothing but the label": {func(o *metav1.ObjectMeta) {
			o.Labels, o.Annotations = map[string]string{resourcesv1alpha1.LabelCondemned: "true"}, nil
		}, grace, Free, true},
		"GC-18/nothing but the seal": {func(o *metav1.ObjectMeta) {
			o.Labels, o.Annotations = nil, map[string]string{resourcesv1alpha1.AnnotationCondemnedAs: "x"}
		}, grace, Free, true},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "somebody", Operation: metav1.ManagedFieldsOperationUpdate, Time: &written}, {Manager: Collector, Time: &written},
			}}
			labels, annotations := Mark(Content(object), marked)
			maps.Copy(object.Labels, labels)
			maps.Copy(object.Annotations, annotations)
			c.change(object)
			expect.Equal(t, StandingOf(object, grace, marked.Add(c.after)), c.want, "got standing")
			expect.Equal(t, Marked(object), c.isMarked, "GC-19: there is something of a mark")
		})
	}
}
