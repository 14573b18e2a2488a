package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// TestGarbageCollectableObjects: what the garbage collector collects is left to it where it runs, and deleted where it does not.
func TestGarbageCollectableObjects(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"MRX-6/GC-13 it runs": true, "GC-14 there is none": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.GarbageCollector = runs })
			f.apply("m", "collectable=a", "other=a", "third=a")
			f.target.change("collectable", func(object *unstructured.Unstructured) {
				labels := object.GetLabels()
				labels[resourcesv1alpha1.LabelGarbageCollectableReference] = "T" // Any truthy value counts.
				object.SetLabels(labels)
			})
			f.secret("m", "2", "third=a")
			f.complete("m")
			_, collectable := f.target.value("collectable")
			_, other := f.target.value("other")
			expect.True(t, collectable == runs && !other,
				"BH-MR-38: the collectable one is there: %t, the other one: %t", collectable, other)
			f.must(f.source.Delete(f.ctx, f.get("m")))
			f.complete("m")
			expect.Equal(t, expect.OK(f.target.value("collectable")), runs,
				"MRX-6: after the end of the ManagedResource the collectable one is there")
		})
	}
}
