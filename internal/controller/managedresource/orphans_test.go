package managedresource

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/engine/targetcluster"
)

// TestOrphans holds that an object that carries our origin and that no inventory names is told of, that it is deleted only where
// that is configured, and that nothing else is ever taken for one.
func TestOrphans(t *testing.T) {
	for name, tc := range map[string]struct {
		collect bool
		prepare func(*fixture)
		// uid and origin are what the audit saw; empty means what there is.
		uid, origin string
		told, gone  bool
	}{
		"it is told of and stays":                        {told: true},
		"it is deleted where that is configured":         {collect: true, told: true, gone: true},
		"another object by the name":                     {collect: true, uid: "other"},
		"the origin of another source":                   {collect: true, origin: "elsewhere:n/mr"},
		"its ManagedResource is gone":                    {collect: true, origin: "n/gone"},
		"no origin":                                      {collect: true, origin: "?"},
		"its ManagedResource was not applied completely": {collect: true, prepare: func(f *fixture) { f.edit("mr", func(*resourcesv1alpha1.ManagedResource) {}) }},
		"its ManagedResource keeps its objects": {collect: true, prepare: func(f *fixture) {
			f.edit("mr", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.KeepObjects = ptr.To(true) })
			f.settle("mr")
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
			f.settle("second")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(cfg *config.ManagedResourceControllerConfig) { cfg.CollectOrphans = &tc.collect })
			f.managed("mr", "a=1")
			f.settle("mr")
			origin := f.origin(f.get("mr"))
			f.target.put("lost", "1", map[string]any{"uid": "lost", "annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: origin}})
			if tc.prepare != nil {
				tc.prepare(f)
			}
			stray := targetcluster.Stray{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "n", Name: "lost", UID: "lost", Origin: origin}
			if tc.uid != "" {
				stray.UID = types.UID(tc.uid)
			}
			if tc.origin != "" {
				stray.Origin = tc.origin
			}
			f.Stray(f.ctx, stray)
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
