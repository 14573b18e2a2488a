package inspect

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
)

// Deletion is the state of an object's deletion, and what blocks it.
type Deletion struct {
	// Since is the time at which the deletion was requested; nil if it was not.
	Since *metav1.Time `json:"since,omitempty"`
	// Holds are the reasons why the object stays or would stay after a deletion, such as finalizers.
	Holds []string `json:"holds,omitempty"`
}

func deletionOf(live *unstructured.Unstructured, mr *resourcesv1alpha1.ManagedResource) Deletion {
	if live == nil {
		return Deletion{}
	}
	d := Deletion{Since: live.GetDeletionTimestamp()}
	for _, finalizer := range live.GetFinalizers() {
		d.Holds = append(d.Holds, fmt.Sprintf("finalizer %s%s", finalizer, addedBy(writerOf(live, "metadata", "finalizers"))))
	}
	if d.Since != nil {
		d.Holds = append(d.Holds, healthcheck.BlocksDeletion(live)...)
	}
	if meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject) {
		d.Holds = append(d.Holds, fmt.Sprintf("annotation %s: resource-manager does not delete it",
			resourcesv1alpha1.AnnotationKeepObject))
	}
	if value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]; found {
		d.Holds = append(d.Holds, fmt.Sprintf("annotation %s: resource-manager removes its finalizers %s after its deletion",
			resourcesv1alpha1.AnnotationFinalizeDeletionAfter, value))
	}
	if ownership.IsCollectable(live.GetAPIVersion(), live.GetKind(), live.GetLabels()) {
		d.Holds = append(d.Holds, fmt.Sprintf("label %s: the garbage collector deletes it when nothing refers to it",
			resourcesv1alpha1.LabelGarbageCollectableReference))
	}
	if mr != nil && mr.Spec.KeepObjects != nil && *mr.Spec.KeepObjects {
		d.Holds = append(d.Holds, "spec.keepObjects of its ManagedResource: it stays when the ManagedResource goes")
	}
	return d
}

func addedBy(writer *Writer) string {
	if writer == nil {
		return ""
	}
	return " (" + writer.Manager + ")"
}
