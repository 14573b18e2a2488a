package controller

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// TestOrphans holds that an object that carries our origin and that no inventory names is told of, that it is deleted only where
// that is configured, and that nothing else is ever taken for one.
func TestOrphans(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		collect bool
		prepare func(*fixture)
		// uid and origin are what the audit saw; empty means what there is.
		uid, origin string
		told, gone  bool
	}{
		"a controller made it of one of ours": {collect: true, prepare: func(f *fixture) {
			f.target.change("lost", func(o *unstructured.Unstructured) {
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "a", UID: "d", Controller: ptr.To(true)}})
			})
		}},
		"somebody copied one of ours": {collect: true, prepare: func(f *fixture) {
			f.target.change("lost", func(o *unstructured.Unstructured) { o.SetManagedFields(wroteOrigin("replicator")) })
		}},
		"nobody knows who wrote its origin": {collect: true, prepare: func(f *fixture) {
			f.target.change("lost", func(o *unstructured.Unstructured) { o.SetManagedFields(nil) })
		}},
		"it is older than its ManagedResource, which may have kept it": {collect: true, told: true, prepare: func(f *fixture) {
			f.target.change("lost", func(o *unstructured.Unstructured) {
				o.SetCreationTimestamp(metav1.NewTime(f.clock.Now().Add(-time.Hour)))
			})
			mr := f.get("mr")
			mr.CreationTimestamp = metav1.NewTime(f.clock.Now())
			f.must(f.source.Update(f.ctx, mr))
		}},

		"it is told of and stays":                        {told: true},
		"it is deleted where that is configured":         {collect: true, told: true, gone: true},
		"another object by the name":                     {collect: true, uid: "other"},
		"the origin of another source":                   {collect: true, origin: "elsewhere:n/mr"},
		"its ManagedResource is gone":                    {collect: true, origin: "n/gone"},
		"no origin":                                      {collect: true, origin: "?"},
		"its ManagedResource was not applied completely": {collect: true, prepare: func(f *fixture) { f.edit("mr", func(*resourcesv1alpha1.ManagedResource) {}) }},
		"its ManagedResource keeps its objects": {collect: true, prepare: func(f *fixture) {
			f.edit("mr", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
			f.complete("mr")
		}},
		"it is to be kept": {collect: true, prepare: func(f *fixture) {
			f.target.change("lost", func(o *unstructured.Unstructured) {
				annotations := o.GetAnnotations()
				annotations[resourcesv1alpha1.AnnotationKeepObject] = "true"
				o.SetAnnotations(annotations)
			})
		}},
		"another inventory names it": {collect: true, prepare: func(f *fixture) {
			f.managed("second", "lost=1")
			f.complete("second")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) { cfg.CollectOrphans = &tc.collect })
			f.managed("mr", "a=1")
			f.complete("mr")
			origin := f.origin(f.get("mr"))
			f.target.put("lost", "1", map[string]any{"uid": "lost", "annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: origin}})
			f.target.change("lost", func(o *unstructured.Unstructured) { o.SetManagedFields(wroteOrigin(f.Target.Manager())) })
			if tc.prepare != nil {
				tc.prepare(f)
			}
			orphan := target.Orphan{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "n", Name: "lost", UID: "lost", Origin: origin}
			if tc.uid != "" {
				orphan.UID = types.UID(tc.uid)
			}
			if tc.origin != "" {
				orphan.Origin = tc.origin
			}
			f.Orphan(f.ctx, orphan)
			if told := strings.Contains(f.events(), reasonOrphan); told != tc.told {
				t.Errorf("told: got %t, want %t: %s", told, tc.told, f.events())
			}
			if _, there := f.target.value("lost"); there == tc.gone {
				t.Errorf("gone: got %t, want %t", !there, tc.gone)
			}
			if _, there := f.target.value("a"); !there {
				t.Error("an object of the manifest is gone")
			}
		})
	}
}

// wroteOrigin are the managed fields of an object whose origin was written by a manager.
func wroteOrigin(manager string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status"},
		{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:` + resourcesv1alpha1.AnnotationOrigin + `":{}}}}`)},
	}
}

// MRB-16: an orphan that a run is about to have is not deleted, or created anew.
func TestOrphanBecomesWanted(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		t.Run("at its "+method, func(t *testing.T) {
			f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) { cfg.CollectOrphans = ptr.To(true) })
			f.managed("mr", "a=1")
			f.complete("mr")
			origin := f.origin(f.get("mr"))
			f.target.put("lost", "1", map[string]any{"uid": "lost", "labels": map[string]any{resourcesv1alpha1.LabelManagedBy: "gardener"},
				"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: origin, resourcesv1alpha1.AnnotationDescription: resourcesv1alpha1.DescriptionValue}})
			f.target.change("lost", func(o *unstructured.Unstructured) { o.SetManagedFields(wroteOrigin(f.Target.Manager())) })
			ended := make(chan error, 1)
			f.target.hook(func(m, _ string) int {
				if m != method {
					return 0
				}
				f.target.hook(nil)
				f.secret("mr", "2", "a=1", "lost=1")
				go func() {
					_, err := f.run("mr")
					ended <- err
				}()
				poll(t, "a run is about to have it", func() bool { return len(ended) > 0 || f.inventory("mr") == "a lost" })
				return 0
			})
			f.Orphan(f.ctx, target.Orphan{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "n", Name: "lost", UID: "lost", Origin: origin})
			f.must(<-ended)
			f.complete("mr")
			if _, there := f.target.value("lost"); !there || f.inventory("mr") != "a lost" {
				t.Errorf("there: %t, inventory %q, %s", there, f.inventory("mr"), f.condition("mr"))
			}
		})
	}
}
