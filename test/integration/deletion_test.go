package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
)

func withFinalizer(name string, more ...string) string {
	content := "  finalizers: [example.org/hold]\n"
	for _, m := range more {
		content += m
	}
	return configMap(name, content)
}

func (f *fixture) release(names ...string) {
	f.Helper()
	for _, name := range names {
		f.patch(harness.Object("v1", "ConfigMap", f.ns, name), map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
}

// MRB-18, MRX-12: what holds a deletion is named, and nothing new is applied before.
func TestPendingDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", withFinalizer("one")+withFinalizer("two"))
	f.settled("mr")
	f.secret("mr", map[string]string{"data.yaml": configMap("new")})
	mr := f.rule("MRS-8: the condition of a pending deletion").applied("mr", "Progressing/DeletionPending", "Could not clean all old resources: 2 errors occurred: [deletion of old resource \"v1/ConfigMap/$NS/one\" is still pending", "example.org/hold")
	for _, conditionType := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ResourcesProgressing} {
		expect.Equal(t, expect.First(harness.Condition(mr, conditionType)), "Unknown/ChecksPending",
			"MR-10: %s", conditionType)
	}
	waiting := harness.Object("v1", "ConfigMap", f.ns, "new")
	expect.Error(t, f.shoot.Get(f.ctx, client.ObjectKeyFromObject(waiting), waiting), "MR-10: new objects must wait")
	f.rule("BH-MR-25: an object with finalizers stays").get("v1", "ConfigMap", "one")
	f.release("one", "two")
	f.settled("mr")
	f.get("v1", "ConfigMap", "new")
}

// MRX-8, MRX-14: deletion of the ManagedResource.
func TestDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", withFinalizer("held")+configMap("free")+deployment("d", "")+"---\napiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: $NS}\nspec: {selector: {a: b}, ports: [{port: 1}]}\n")
	f.applied("mr", "True/ApplySucceeded")
	f.patchMR("mr", map[string]any{"metadata": map[string]any{"finalizers": append(f.mr("mr").Finalizers, "example.org/theirs")}})
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	mr := f.rule("MRX-3: the condition while objects are deleted").applied("mr", "Progressing/DeletionPending", "1 error occurred: deletion of old resource \"v1/ConfigMap/$NS/held\" is still pending")
	const deleting = "The resources are currently being deleted."
	if got, message := harness.Condition(mr, resourcesv1alpha1.ResourcesHealthy); got != "False/DeletionPending" || message != deleting {
		t.Error("MRX-1", got, message)
	}
	if got, message := harness.Condition(mr, resourcesv1alpha1.ResourcesProgressing); got != "True/DeletionPending" || message != deleting {
		t.Error("MRX-1", got, message)
	}
	f.rule("MR-4/BH-MR-24: the deletion deletes the objects").gone("v1", "ConfigMap", "free")
	f.gone("apps/v1", "Deployment", "d")
	f.release("held")
	f.eventually(func() error {
		if got := f.mr("mr").Finalizers; len(got) != 1 || got[0] != "example.org/theirs" {
			return fmt.Errorf("MRX-4: want only the finalizer of somebody else, got %v", got)
		}
		return nil
	})
	f.patchMR("mr", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	f.mrGone("mr")
}

// MRX-11, MRB-33: what vanishes at once is not waited for.
func TestDeletionIsQuick(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("a")+configMap("b"))
	f.settled("mr")
	started := time.Now()
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.mrGone("mr")
	if took := time.Since(started); took > 4*time.Second {
		t.Errorf("MRX-11/MRB-33: took %s: the five seconds of a pending deletion were waited for", took)
	}
}

// MRX-5: what stays, and what goes though it is ignored. A client that deletes ManagedResources deletes
// their Secrets first (HLP-7), and may want the objects kept at the last moment only (HLP-30).
func TestWhatStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kept := func(name string) string {
		return configMap(name, "  annotations: {resources.gardener.cloud/keep-object: '1'}\n")
	}
	f.managed("keep", kept("annotated")+kept("left-out")+configMap("goes"))
	f.managed("all", configMap("stays")+configMap("dropped"), func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
	f.managed("ignored", configMap("ignored"))
	f.managed("migrated", configMap("migrated"))
	all := []string{"keep", "all", "ignored", "migrated"}
	for _, name := range all {
		f.settled(name)
	}
	f.secret("all", map[string]string{"data.yaml": configMap("stays")})
	f.rule("MRX-15: keepObjects is about the end of the ManagedResource only").gone("v1", "ConfigMap", "dropped")
	f.settled("all")
	f.secret("keep", map[string]string{"data.yaml": kept("annotated") + configMap("goes")})
	f.eventually(func() error {
		if got := len(f.mr("keep").Status.Resources); got != 2 {
			return fmt.Errorf("MRX-5: the inventory has %d entries", got)
		}
		return nil
	})
	f.annotateMR("ignored", resourcesv1alpha1.AnnotationIgnore, "true")
	f.applied("ignored", "True/ManagedResourceIgnored")
	f.patchMR("migrated", map[string]any{"spec": map[string]any{"keepObjects": true}})
	for _, name := range all {
		f.must(f.seed.Delete(f.ctx, harness.Secret(f.ns, name, nil)))
		f.must(f.seed.Delete(f.ctx, f.mr(name)))
		f.rule("HLP-7: the deletion needs no Secrets").mrGone(name)
	}
	f.gone("v1", "ConfigMap", "goes")
	f.rule("BH-MR-6: the end of an ignored ManagedResource is that of its objects").gone("v1", "ConfigMap", "ignored")
	f.rule("MRX-5: an annotated object stays").get("v1", "ConfigMap", "annotated")
	f.rule("MRX-5: an annotated object that the manifest has no more stays").get("v1", "ConfigMap", "left-out")
	f.rule("MRX-2/MRA-4f: keepObjects keeps all").get("v1", "ConfigMap", "stays")
	f.rule("HLP-30: keepObjects counts though it came last").get("v1", "ConfigMap", "migrated")
}

// MRX-9: finalizers go when their time is up.
func TestFinalizeDeletionAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", withFinalizer("soon", "  annotations: {resources.gardener.cloud/finalize-deletion-after: 2s}\n")+
		withFinalizer("broken", "  annotations: {resources.gardener.cloud/finalize-deletion-after: abc}\n"))
	f.settled("mr")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.eventually(func() error { // MRB-36: that would have been known before.
		events := &corev1.EventList{}
		if err := f.seed.List(f.ctx, events, client.InNamespace(f.ns)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "DoubtfulManifest" {
				return nil
			}
		}
		return fmt.Errorf("no warning about the annotation among %d events", len(events.Items))
	})
	f.rule("MRX-9: an annotation that can't be parsed").
		applied("mr", "Progressing/DeletionPending", "failed parsing duration of resources.gardener.cloud/finalize-deletion-after annotation")
	f.rule("BH-MR-26: finalizers go when the time is up").gone("v1", "ConfigMap", "soon")
	f.release("broken")
	f.mrGone("mr")
}

// TestFinalizeNamespace: a Namespace that something holds is finalized.
func TestFinalizeNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-held, finalizers: [example.org/hold], annotations: {resources.gardener.cloud/finalize-deletion-after: 1s}}\nspec: {finalizers: [kubernetes, example.org/hold]}\n")
	f.applied("mr", "True/ApplySucceeded")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.rule("MRX-10/MRB-10: finalizers in metadata and spec go").mrGone("mr")
}

// MRX-7: only the claims of the StatefulSet go.
func TestClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, namespace: $NS}\nspec:\n  replicas: 0\n  serviceName: s\n"+
		"  selector: {matchExpressions: [{key: app, operator: Exists}]}\n  template: {metadata: {labels: {app: s}}, spec: {containers: [{name: main, image: i:1}]}}\n"+
		"  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n",
		func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.DeletePersistentVolumeClaims = ptr.To(true) })
	f.applied("mr", "True/ApplySucceeded")
	for _, name := range []string{"data-s-0", "data-other-0"} {
		claim := harness.Object("v1", "PersistentVolumeClaim", f.ns, name)
		claim.SetLabels(map[string]string{"app": "s"})
		claim.Object["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
		f.must(f.shoot.Create(f.ctx, claim))
	}
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.mrGone("mr")
	f.rule("MRX-16/MRA-4h: the claims of the StatefulSet go").gone("v1", "PersistentVolumeClaim", "data-s-0")
	f.rule("MRB-11: a claim that only the selector matches stays").get("v1", "PersistentVolumeClaim", "data-other-0")
}

// MRB-3: nothing that was created is forgotten, even if the apply never succeeded.
func TestFailedApplyLeaksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("created")+"---\napiVersion: v1\nkind: Service\nmetadata: {name: 'Not Valid', namespace: $NS}\nspec: {ports: [{port: 1}]}\n")
	f.applied("mr", "False/ApplyFailed")
	f.exists("v1", "ConfigMap", "created")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.mrGone("mr")
	f.rule("MRB-3: it was created before the apply failed").gone("v1", "ConfigMap", "created")
}

// BH-MR-9, MRB-16: an object that moved to another ManagedResource is not deleted by the first.
func TestMovedObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("from", configMap("moved")+configMap("handed")+configMap("rest"))
	f.settled("from")
	uid, handed := f.get("v1", "ConfigMap", "moved").GetUID(), f.get("v1", "ConfigMap", "handed").GetUID()
	f.secret("from", map[string]string{"data.yaml": configMap("moved") + configMap("handed", "  annotations: {resources.gardener.cloud/mode: Ignore}\n") + configMap("rest")})
	f.eventually(func() error {
		if got := len(f.mr("from").Status.Resources); got != 2 {
			return fmt.Errorf("inventory has %d entries", got)
		}
		return nil
	})
	f.managed("to", configMap("moved")+configMap("handed"))
	f.settled("to")
	f.secret("from", map[string]string{"data.yaml": configMap("rest")})
	f.eventually(func() error {
		if got := len(f.mr("from").Status.Resources); got != 1 {
			return fmt.Errorf("inventory has %d entries", got)
		}
		return nil
	})
	f.settled("from")
	cm := f.get("v1", "ConfigMap", "moved")
	expect.True(t, cm.GetUID() == uid && cm.GetDeletionTimestamp() == nil, "MRB-16: the moved object was deleted")
	if cm := f.get("v1", "ConfigMap", "handed"); cm.GetUID() != handed || cm.GetDeletionTimestamp() != nil || !strings.HasSuffix(cm.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin], "/to") {
		t.Errorf("BH-MR-9: an object that is handed over by mode Ignore: %v", cm.Object["metadata"])
	}
}

// MRK-8, MRH-1, MRP-1: classes.
func TestClasses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("other", configMap("other"), func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.Class = ptr.To("test") })
	f.managed("mine", configMap("mine"))
	f.settled("mine")
	if mr := f.mr("other"); len(mr.Finalizers) != 0 || len(mr.Status.Conditions) != 0 {
		t.Errorf("BH-MR-11: got %v", mr)
	}
	f.patchMR("mine", map[string]any{"spec": map[string]any{"class": "test"}})
	f.rule("BH-MR-13/MRA-4a: the instance of the old class cleans up").gone("v1", "ConfigMap", "mine")
	f.eventually(func() error {
		if got := f.mr("mine").Finalizers; len(got) != 0 {
			return fmt.Errorf("MRK-5 finalizers: %v", got)
		}
		return nil
	})
	foreign := resourcesv1alpha1.FinalizerName + "-test"
	f.patchMR("other", map[string]any{"metadata": map[string]any{"finalizers": []any{foreign}}, "spec": map[string]any{"class": nil}})
	f.managed("marker", configMap("marker")) // Once this one is through, the other one has been looked at, too.
	f.settled("marker")
	if got := f.mr("other"); len(got.Status.Conditions) != 0 {
		t.Errorf("MR-5: got %v", got.Status)
	}
	f.patchMR("other", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	f.rule("MRH-1: a ManagedResource that came to this class is checked").settled("other")
	f.rule("BH-MR-14: the instance of the new class creates the objects").get("v1", "ConfigMap", "other")
}

// BH-MR-7, MRK-7: a ManagedResource that is to be left alone.
func TestIgnoredManagedResource(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.managed("mr", configMap("cm", "data: {a: b}\n"))
	f.settled("mr")
	f.annotateMR("mr", resourcesv1alpha1.AnnotationIgnore, "true")
	const ignored = "ManagedResource is marked to be ignored."
	mr := f.rule("MR-3/MRS-12: ResourcesApplied").applied("mr", "True/ManagedResourceIgnored", ignored)
	for conditionType, want := range map[resourcesv1alpha1.ConditionType]string{
		resourcesv1alpha1.ResourcesHealthy: "True/ManagedResourceIgnored", resourcesv1alpha1.ResourcesProgressing: "False/ManagedResourceIgnored",
	} {
		if got, message := harness.Condition(mr, conditionType); got != want || message != ignored {
			t.Errorf("MRS-12: %s is %s: %s", conditionType, got, message)
		}
	}
	cm := f.get("v1", "ConfigMap", "cm")
	f.patch(cm, map[string]any{"data": map[string]any{"a": "changed"}})
	f.secret("mr", map[string]string{"data.yaml": configMap("cm", "data: {a: c}\n")})
	f.stays(500*time.Millisecond, func() error {
		if got := nested(f.get("v1", "ConfigMap", "cm"), "data", "a"); got != "changed" {
			return fmt.Errorf("BH-MR-5: data is %s", got)
		}
		return nil
	})
	f.annotateMR("mr", resourcesv1alpha1.AnnotationIgnore, nil)
	f.settled("mr")
	f.eventually(func() error {
		if got := nested(f.get("v1", "ConfigMap", "cm"), "data", "a"); got != "c" {
			return fmt.Errorf("MR-3: data is %s", got)
		}
		return nil
	})

	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, "wait-for-state")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.rule("MRT-7: wait-for-state").stays(500*time.Millisecond, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(cm.GroupVersionKind())
		return f.shoot.Get(f.ctx, client.ObjectKeyFromObject(cm), object)
	})
	f.annotateMR("mr", resourcesv1alpha1.AnnotationOperation, nil)
	f.mrGone("mr") // The end of the annotation wakes the deletion (MRB-22).
}

// MRX-19: an object of a kind that can only be created, as a review, is an answer that is never stored: it holds neither a change nor the finalizer.
func TestObjectsThatAreNeverStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const review = "---\napiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nmetadata: {name: review}\nspec: {nonResourceAttributes: {path: /, verb: get}}\n"
	f.managed("mr", configMap("one")+review)
	f.rule("T3-10/MRX-19: the API server refuses a review with metadata").applied("mr", "False/ApplyFailed", "SelfSubjectAccessReview")
	f.secret("mr", map[string]string{"data.yaml": configMap("two")})
	f.rule("MRX-19: a review that no manifest has any more holds nothing up").applied("mr", "True/ApplySucceeded")
	f.get("v1", "ConfigMap", "two")
	f.gone("v1", "ConfigMap", "one")
	f.secret("mr", map[string]string{"data.yaml": configMap("two") + review})
	f.rule("MRX-19: it is in the inventory again").applied("mr", "False/ApplyFailed", "SelfSubjectAccessReview")
	f.must(f.seed.Delete(f.ctx, f.mr("mr")))
	f.rule("MRX-19: a review holds no finalizer").mrGone("mr")
}
