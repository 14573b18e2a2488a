package controller

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
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
			if deleted := f.target.count(http.MethodDelete) > 0; deleted == changed {
				t.Errorf("%s: deleted %t", name, deleted)
			}
		})
	}
}

// MR-36: the refusal of an update names the annotation that would help, where it would: a field is immutable, and the object is ours and may be deleted.
func TestRefusalNamesTheAnnotation(t *testing.T) {
	t.Parallel()
	const immutable = `Deployment.apps "d" is invalid: spec.selector: Invalid value: {}: field is immutable`
	for name, tc := range map[string]struct {
		origin, keep, cause string
		want                bool
	}{
		"MR-36/ours":                   {"n/m", "", immutable, true},
		"MR-36/of another source":      {"elsewhere:n/m", "", immutable, false},
		"MR-36/it must not be deleted": {"n/m", "true", immutable, false},
		"MR-36/another refusal":        {"n/m", "", "spec.replicas: Invalid value: -1: must be positive", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.Identity = "here" })
			f.managed("m")
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: tc.origin, resourcesv1alpha1.AnnotationKeepObject: tc.keep})
			a := &attempt{applier: &applier{Reconciler: f.Reconciler, mr: f.get("m")}, desired: &plan.Desired{Unstructured: live}, live: live, merged: live}
			got := a.withHelp(errors.New(tc.cause)).Error()
			if helps := strings.HasSuffix(got, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate+`: "true"`); helps != tc.want || !strings.HasPrefix(got, tc.cause) {
				t.Errorf("MR-36: %s", got)
			}
		})
	}
}

// TestReplace_KeptField shows that an object is not deleted if its update is refused because of a field that its manifest does not have.
func TestReplace_KeptField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field string
		want  string
	}{
		"MR-33/a kept field":          {"spec.replicas", "the refused field spec.replicas is not from its manifest, but kept from the object"},
		"MR-33/a field of a manifest": {"spec.selector", "error deleting object"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.configure(func(o *Options) { o.Identity = "here" })
			f.managed("m")
			object := func(replicas int64) *unstructured.Unstructured {
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"selector": "s"}}}
				o.SetName("d")
				o.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: "here:n/m", resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate: "true"})
				if replicas > 0 {
					_ = unstructured.SetNestedField(o.Object, replicas, "spec", "replicas")
				}
				return o
			}
			refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: c.field}}}}}
			mr := f.get("m")
			ticket, _ := f.Tracker.Begin(objects.ToApply, steps.OwnerOf(mr), objects.ID{})
			defer ticket.End()
			a := &attempt{applier: &applier{Reconciler: f.Reconciler, mr: mr, lease: steps.NewFreshness(f.ctx, f.Reconciler.source, f.clock, mr, steps.Secrets{})},
				desired: &plan.Desired{Unstructured: object(0)}, ticket: ticket, live: object(3), merged: object(3)}
			err := a.replace(t.Context(), refusal)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}
