package managedresource

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// MRV-75, MRX-6, GC-13, GC-14, BH-MR-38: what the garbage collector collects is left to it where it runs, and deleted where it does not.
func TestGarbageCollectableObjects(t *testing.T) {
	for name, runs := range map[string]bool{"it runs": true, "there is none": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.GarbageCollector = runs
			f.managed("m", "collectable=a", "other=a", "third=a")
			f.settle("m")
			f.target.change("collectable", func(object *unstructured.Unstructured) {
				labels := object.GetLabels()
				labels[resourcesv1alpha1.LabelGarbageCollectableReference] = "true"
				object.SetLabels(labels)
			})
			f.secret("m", "2", "third=a")
			f.settle("m")
			_, collectable := f.target.value("collectable")
			_, other := f.target.value("other")
			if collectable != runs || other {
				t.Errorf("the collectable one is there: %t, the other one: %t", collectable, other)
			}
		})
	}
}
