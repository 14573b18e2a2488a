package controller

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
)

// MR-2: a ManagedResource that is gone needs nothing.
func TestNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	result, err := f.run("nobody")
	f.must(err)
	got := f.target.count(http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete)
	expect.True(t, got == 0 && result.RequeueAfter == 0, "MR-2: %d requests, and again after %s", got, result.RequeueAfter)
}

// MR-25: what was never applied is created without a look. MR-8: the inventory is sorted, whatever the order of manifests.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "b=1", "a=1")
	mr := &resourcesv1alpha1.ManagedResource{}
	f.must(f.source.Get(f.ctx, types.NamespacedName{Namespace: "n", Name: "m"}, mr))
	if got := mr.Status.Resources; len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || mr.Status.SecretsDataChecksum == nil {
		t.Errorf("MR-8: got %v, checksum %v", got, mr.Status.SecretsDataChecksum)
	}
	looks, creations := f.target.count(http.MethodGet), f.target.count(http.MethodPost)
	expect.True(t, looks == 0 && creations == 2, "MR-25: %d looks, %d creations", looks, creations)
}

// TestOrderOfAReconciliation: an ignored ManagedResource is not handed over, and a deletion does not wait for a hand-over.
func TestOrderOfAReconciliation(t *testing.T) {
	t.Parallel()
	f := newApplied(t, "m", "a=1")
	f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Spec.Class, mr.Annotations = ptr.To("other"), map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	})
	f.complete("m")
	if _, there := f.target.value("a"); !there || len(f.get("m").Finalizers) != 1 {
		t.Errorf("MRK-7: an ignored ManagedResource was handed over: its object is there: %t, finalizers %v", there, f.get("m").Finalizers)
	}

	f.apply("n", "b=1")
	f.edit("n", func(mr *resourcesv1alpha1.ManagedResource) {
		mr.Finalizers = append([]string{resourcesv1alpha1.FinalizerName + "-other"}, mr.Finalizers...)
	})
	f.must(f.source.Delete(f.ctx, f.get("n")))
	f.complete("n")
	if _, there := f.target.value("b"); there || len(f.get("n").Finalizers) != 1 {
		t.Errorf("MRK-7: a deletion waits for a hand-over: the object is there: %t, finalizers %v", there, f.get("n").Finalizers)
	}
}
