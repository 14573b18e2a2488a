package apply

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/test/expect"
)

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
			applier := newApplier(t, http.NotFound, "here")
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: tc.origin, resourcesv1alpha1.AnnotationKeepObject: tc.keep})
			a := &attempt{Run: applier.Begin(managed("m"), &plan.Plan{}, nil, nil), desired: &plan.Desired{Unstructured: live}, live: live, merged: live}
			got := replacement{a, errors.New(tc.cause)}.withHelp().Error()
			helps := strings.HasSuffix(got, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate+`: "true"`)
			expect.True(t, helps == tc.want && strings.HasPrefix(got, tc.cause), "MR-36: %s", got)
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
			applier, mr := newApplier(t, http.NotFound, "here"), managed("m")
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
			ticket, _ := applier.Tracker.Begin(objects.ToApply, steps.OwnerOf(mr), objects.ID{})
			defer ticket.End()
			freshness := steps.NewFreshness(t.Context(), applier.Source, applier.Clock, mr, steps.Secrets{})
			a := &attempt{Run: applier.Begin(mr, &plan.Plan{}, nil, freshness), desired: &plan.Desired{Unstructured: object(0)}, ticket: ticket, live: object(3), merged: object(3)}
			err := replacement{a, refusal}.try(t.Context())
			expect.ErrorContains(t, err, c.want, "%s", name)
		})
	}
}
