package controller

import (
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// MRD-13, MRB-54: an object is an orphan if no inventory names it; one that names it by an equivalent kind does.
func TestEquivalentKindIsNoOrphan(t *testing.T) {
	t.Parallel()
	for _, manifest := range []string{"v1", "old.example/v1"} {
		t.Run("the inventory has "+manifest, func(t *testing.T) {
			f := newFixture(t)
			f.managed("mr")
			f.edit("mr", func(mr *resourcesv1alpha1.ManagedResource) {
				mr.Spec.Equivalences = [][]metav1.GroupKind{{{Kind: "ConfigMap"}, {Group: "old.example", Kind: "ConfigMap"}}}
			})
			f.manifests("mr", "2", "---\napiVersion: "+manifest+"\nkind: ConfigMap\nmetadata: {namespace: 'n', name: 'a'}\ndata: {v: '1'}\n")
			f.complete("mr")
			if got := f.condition("mr"); got[:4] != "True" || f.inventory("mr") != "a" {
				t.Fatal(got, f.inventory("mr"))
			}
			// The audit of the kind of which another ManagedResource has objects finds it.
			orphan := f.orphan("n", "a", "mr")
			if manifest == "v1" {
				orphan.ID = objects.NewID(schema.GroupKind{Group: "old.example", Kind: "ConfigMap"}, "n", "a")
			}
			f.audit(orphan)
			expect.Equal(t, f.events(), "", "MRB-54")
		})
	}
}

// MRX-5: an entry is looked for where its kind lives - now, and not where it lived for a while.
func TestDeletedWhereItsKindLives(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.scope(true) // The CustomResourceDefinition is another one for a while, and somebody looks.
	_, _ = f.Target.Get(f.ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "n", "a")
	f.target.scope(false) // The backup is restored.
	must.Succeed(t, expect.ErrorOf(f.Target.Scope(f.ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	f.runs("m", 3)
	if _, there := f.target.value("a"); there {
		mr := &resourcesv1alpha1.ManagedResource{}
		err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, mr)
		t.Errorf("its origin is %s, and it is left behind; its ManagedResource: %v", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], err)
	}
}

// MRD-12: an entry without a namespace is one with the namespace "default". It is from before the kind had namespaces; another ManagedResource, which let go
// of the object there, has handed it over for its sake.
func TestEntryWithoutNamespaceIsInDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("m")
	mr := f.get("m")
	f.target.put("a", "1", map[string]any{"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: f.owners.Origin(steps.OwnerOf(mr))}})
	mr.Status.Resources = []resourcesv1alpha1.ObjectReference{{ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}}
	f.must(f.source.Status().Update(f.ctx, mr))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	f.runs("m", 3)
	if _, there := f.target.value("a"); there {
		t.Errorf("an object whose origin is %s is left behind", f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin])
	}
}

// Promise: what a manifest has is not deleted. A kind has another scope by now, and while another object fails the inventory has the object at both
// places.
func TestKindHasAnotherScopeWhileAnotherObjectFails(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	// Its CustomResourceDefinition is deleted, and created again with another scope.
	f.target.remove("a")
	f.target.scope(true)
	f.refuse(http.MethodPost, "b", http.StatusForbidden)
	f.secret("m", "2", "a=1", "b=1")
	f.runs("m", 3)
	if _, there := f.target.value("a"); !there {
		t.Fatal("it is not created where its kind lives", f.condition("m"))
	}
	uid := f.uid("a")
	for range 3 {
		_, _ = f.run("m") // It is tried again.
	}
	if deleted := f.target.count(http.MethodDelete); f.uid("a") != uid || deleted > 0 {
		t.Errorf("an object that the manifest has all the time was deleted %d times and created anew; inventory %s; %s", deleted, f.inventory("m"), f.condition("m"))
	}
}

// Promise: what a manifest has is not deleted. The CustomResourceDefinition of a kind without namespaces comes after its object, whose manifest has one
// nevertheless, and another object of the ManagedResource fails.
func TestKindWithoutNamespacesComesLater(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace string
		fails     bool
	}{"nothing else fails": {", namespace: kube-system", false}, "another object fails": {", namespace: kube-system", true}, "another object fails, no namespace": {"", true}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.target.scope(true)
			f.target.withoutOld(true)
			f.managed("m")
			if tc.fails {
				f.refuse(http.MethodPost, "b", http.StatusForbidden)
			}
			f.manifests("m", "2", "---\napiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {name: 'a'"+tc.namespace+"}\ndata: {v: '1'}\n"+configMap("b", "1", ""))
			f.runs("m", 3)
			f.target.withoutOld(false)
			f.runs("m", 3)
			if _, there := f.target.value("a"); !there {
				t.Fatal("it is not created", f.condition("m"))
			}
			uid := f.uid("a")
			for range 3 {
				_, _ = f.run("m") // It is tried again.
			}
			if deleted := f.target.count(http.MethodDelete); f.uid("a") != uid || deleted > 0 {
				t.Errorf("an object that the manifest has all the time was deleted %d times and created anew; inventory %s; %s", deleted, f.inventory("m"), f.condition("m"))
			}
		})
	}
}

// MRB-16: what another ManagedResource has by its present place is handed to that one by who has it by a former one.
func TestHandedOverFromAFormerPlace(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "former", "a=1")
	f.target.remove("a")
	f.target.scope(true)
	f.apply("present", "a=1")
	f.edited("a", setAnnotation(resourcesv1alpha1.AnnotationOrigin, "n/former"))
	uid := f.uid("a")
	f.secret("former", "2")
	f.complete("former")
	if origin := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; f.uid("a") != uid || origin != "n/present" || f.inventory("former") != "" {
		t.Errorf("deleted: %t, its origin is %q, the inventory of former %q", f.uid("a") != uid, origin, f.inventory("former"))
	}
	f.secret("present", "2")
	f.complete("present")
	expect.False(t, expect.OK(f.target.value("a")), "nobody has it, and it is there")
}

// MRD-13, MRD-16: an entry of a former place is about what the plan has by an equivalent kind where it lives by now, and that is not deleted.
func TestFormerPlaceOfAnEquivalentKind(t *testing.T) {
	t.Parallel()
	const old = "---\napiVersion: old.example/v1\nkind: ConfigMap\nmetadata: {namespace: 'n', name: 'a'}\ndata: {v: '1'}\n"
	f := newFixture(t)
	f.managed("m")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.Equivalences = [][]metav1.GroupKind{{{Kind: "ConfigMap"}, {Group: "old.example", Kind: "ConfigMap"}}}
	})
	f.manifests("m", "2", old)
	f.complete("m")
	uid := f.uid("a")
	f.target.scope(true)
	f.target.change("a", func(o *unstructured.Unstructured) { o.SetNamespace("") })
	f.manifests("m", "3", configMap("a", "1", ""))
	f.runs("m", 4)
	deleted := f.target.count(http.MethodDelete)
	expect.True(t, f.uid("a") == uid && deleted == 0, "what the manifest has was deleted: %d deletions", deleted)
}

// MRX-4, MRS-8: the finalizer stays until all objects are gone, also where the kind has another scope by now than the entry.
func TestPendingAtAnotherPlace(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.target.scope(true)
	f.target.change("a", func(o *unstructured.Unstructured) {
		o.SetFinalizers([]string{"somebody/else"})
	})
	_, _ = f.Target.Get(f.ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "n", "a")
	f.must(f.source.Delete(f.ctx, f.get("m")))
	_, err := f.run("m")
	f.must(err)
	live := f.live("a")
	must.True(t, live.GetDeletionTimestamp() != nil, "not deleted")
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, mr); err != nil {
		t.Errorf("the object is still there, held by %v; its ManagedResource: %v", live.GetFinalizers(), err)
	}
}

// MRD-13, MRX-18: an object whose entry names a version that is not served any more is deleted in the one that is.
func TestEntryOfAnotherVersion(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	mr := f.get("m")
	mr.Status.Resources[0].APIVersion = "v1beta1"
	f.must(f.source.Status().Update(f.ctx, mr))
	f.must(f.source.Delete(f.ctx, f.get("m")))
	f.runs("m", 3)
	expect.False(t, expect.OK(f.target.value("a")), "it is served as v1, and left behind")
}

// MRO-2, MRD-13: what is released loses its origin also if its entry names a version that is not served any more; the audit would take it for an orphan.
func TestReleasedInAnotherVersion(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	mr := f.get("m")
	mr.Status.Resources[0].APIVersion = "v1beta1" // It was applied when that was served.
	f.must(f.source.Status().Update(f.ctx, mr))
	f.manifests("m", "2", configMap("a", "1", "annotations: {resources.gardener.cloud/mode: Ignore}"))
	f.complete("m")
	origin, found := f.live("a").GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	expect.False(t, found,
		"released (%s, inventory %q), and its origin is still %s", f.condition("m"), f.inventory("m"), origin)
}
