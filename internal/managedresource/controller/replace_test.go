package controller

import (
	"context"
	"net/http"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/test/expect"
)

// standing is the cache of a process that stood still: it has one form of a ManagedResource.
type standing struct {
	client.Reader
	form *resourcesv1alpha1.ManagedResource
}

func (s standing) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if mr, is := object.(*resourcesv1alpha1.ManagedResource); is {
		s.form.DeepCopyInto(mr)
		return nil
	}
	return s.Reader.Get(ctx, key, object, opts...)
}

// MRX-5: an object is deleted to be recreated only after the API server was asked whether the run is still current: a process that stood still may not lead any more.
func TestReplacementAsksTheSource(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]bool{"MRX-5/the ManagedResource was changed": true, "MR-33/it was not": false} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.managed("m")
			f.manifests("m", "2", configMap("a", "1", "annotations: {"+resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate+": 'true'}"))
			f.complete("m")
			f.configure(func(o *Options) {
				o.Statuses = source.NewStatuses(standing{f.source, f.get("m")}, f.source, f.source, f.clock, f.Events)
			})
			f.manifests("m", "3", configMap("a", "2", "annotations: {"+resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate+": 'true'}"))
			f.target.hook(func(method, _ string) int {
				if method != http.MethodPut {
					return 0
				}
				if changed {
					f.edit("m", func(mr *resourcesv1alpha1.ManagedResource) { mr.Spec.SecretRefs[0].Name = "another" })
				}
				return http.StatusUnprocessableEntity
			})
			_, _ = f.run("m")
			deleted := f.target.count(http.MethodDelete) > 0
			expect.True(t, deleted != changed, "%s: deleted %t", name, deleted)
		})
	}
}
