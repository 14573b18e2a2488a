package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// TestGarbageCollectableObjects: what the garbage collector collects is left to it where it runs, and deleted where it does not.
func TestGarbageCollectableObjects(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]bool{"MRX-6/GC-13 it runs": true, "GC-14/MRV-75 there is none": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.GarbageCollector = runs })
			f.managed("m", "collectable=a", "other=a", "third=a")
			f.complete("m")
			f.target.change("collectable", func(object *unstructured.Unstructured) {
				labels := object.GetLabels()
				labels[resourcesv1alpha1.LabelGarbageCollectableReference] = "T" // Any truthy value counts.
				object.SetLabels(labels)
			})
			f.secret("m", "2", "third=a")
			f.complete("m")
			_, collectable := f.target.value("collectable")
			_, other := f.target.value("other")
			if collectable != runs || other {
				t.Errorf("BH-MR-38: the collectable one is there: %t, the other one: %t", collectable, other)
			}
			f.must(f.source.Delete(f.ctx, f.get("m")))
			f.complete("m")
			if _, there := f.target.value("collectable"); there != runs {
				t.Errorf("MRV-75: after the end of the ManagedResource the collectable one is there: %t", there)
			}
		})
	}
}

// TestCollectableKinds: the label counts on ConfigMaps and Secrets of the core group only.
func TestCollectableKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.configure(func(o *Options) { o.GarbageCollector = true })
	f.managed("m")
	for name, tc := range map[string]struct {
		apiVersion, kind string
		stays            bool
	}{
		"MRX-6/a ConfigMap":           {"v1", "ConfigMap", true},
		"MRX-6/a Secret":              {"v1", "Secret", true},
		"MRV-75/a Node":               {"v1", "Node", false},
		"MRX-6/a kind with that name": {"example.org/v1", "Secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind}}
			live.SetName("x")
			live.SetLabels(map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"})
			live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "n/m"})
			ref := &resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "x"}}
			got, err := f.judge(f.get("m"), &objects.Entry{Ref: objects.RefOf(ref), Reference: ref}, live, steps.Claims{})
			if err != nil || (got.Why != "") != tc.stays {
				t.Errorf("it stays because %q, %v; want that it stays: %t", got.Why, err, tc.stays)
			}
		})
	}
}
