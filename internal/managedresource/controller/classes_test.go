package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
)

// ofAnotherClass has the object a in its inventory, in another cluster.
func (f *fixture) ofAnotherClass() *resourcesv1alpha1.ManagedResource {
	other := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "other", UID: "other", Generation: 1},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("other")},
	}
	other.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "n", Name: "a"}}}
	return other
}

// MRK-2: the objects of another class may be in another cluster: they are no claims on the objects of this one.
func TestInventoryOfAnotherClass(t *testing.T) {
	f := newFixture(t)
	f.ofAnotherClass()
	f.apply("m", "a=1")
	entries := objects.EntriesOf(f.get("m").Status.Resources)
	others, err := f.owners.ClaimsOn(f.ctx, steps.OwnerOf(f.get("m")), entries)
	f.must(err)
	claims, err := others.On(entries[0].ID)
	expect.True(t, err == nil && len(claims) == 0, "MRK-2: an object in another cluster counts: %+v, %v", claims, err)
}

// MRK-2: the end of a ManagedResource of another class is no drift of the objects of this one.
func TestEndOfAnotherClass(t *testing.T) {
	f := newFixture(t)
	f.watch()
	f.managed("m", "a=1")
	f.rest("m")
	f.Triggers.predicate().Delete(event.DeleteEvent{Object: f.ofAnotherClass()})
	expect.Empty(t, f.Tracker.Progress(steps.OwnerOf(f.get("m"))).OutOfSync, "MRK-2: out of sync")
}

// MRB-16: a ManagedResource that replaces one of the same name, and is paused, has the objects of its inventory.
func TestReplacedAndPaused(t *testing.T) {
	f := newFixture(t)
	f.sharing("b", "m") // The origin is m.
	before, gone := f.get("b"), f.get("b")
	gone.Finalizers = nil
	f.must(f.source.Update(f.ctx, gone))
	f.must(f.source.Delete(f.ctx, gone))
	next := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", UID: "b2", Generation: 1, Finalizers: before.Finalizers,
			Annotations: map[string]string{resourcesv1alpha1.AnnotationOperation: resourcesv1alpha1.OperationWaitForState}},
		Spec: before.Spec,
	}
	f.must(f.source.Create(f.ctx, next))
	next = f.get("b")
	next.Status = before.Status
	f.must(f.source.Status().Update(f.ctx, next))
	f.Triggers.predicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: f.get("b")})
	f.secret("m", "2", "z=1")
	for _, name := range []string{"b", "m", "m", "m"} {
		// Not by run, which passes all inventories to the tracker first.
		_, err := f.Reconcile(f.ctx, reconcile.Request{NamespacedName: steps.OwnerOf(f.get(name))})
		f.must(err)
	}
	expect.True(t, expect.OK(f.target.value("a")), "MRB-16: the object of another ManagedResource was deleted")
}
