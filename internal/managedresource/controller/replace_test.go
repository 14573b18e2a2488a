package controller

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
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
			f := newFixture(t)
			f.Identity = "here"
			f.managed("m")
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			live.SetAnnotations(map[string]string{resourcesv1alpha1.AnnotationOrigin: tc.origin, resourcesv1alpha1.AnnotationKeepObject: tc.keep})
			a := &applier{Reconciler: f.Reconciler, mr: f.get("m")}
			got := a.withHelp(&plan.Desired{Unstructured: live}, live, live, errors.New(tc.cause)).Error()
			if helps := strings.HasSuffix(got, resourcesv1alpha1.AnnotationDeleteOnInvalidUpdate+`: "true"`); helps != tc.want || !strings.HasPrefix(got, tc.cause) {
				t.Errorf("MR-36: %s", got)
			}
		})
	}
}
