package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// ObjectName returns the name of an object in messages, <apiVersion>/<kind>/<namespace>/<name> (MR-28).
func ObjectName(apiVersion, kind, namespace, name string) string {
	return apiVersion + "/" + kind + "/" + objects.NamespaceOf(kind, namespace) + "/" + name
}

// NameOf returns the name of an object in messages.
func NameOf(object *unstructured.Unstructured) string {
	return ObjectName(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
}

// NameOfReference returns the name of an inventory entry in messages.
func NameOfReference(ref *corev1.ObjectReference) string {
	return ObjectName(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
}

// SortReferences sorts an inventory (MRS-7).
func SortReferences(refs []resourcesv1alpha1.ObjectReference) {
	slices.SortStableFunc(refs, func(a, b resourcesv1alpha1.ObjectReference) int {
		return strings.Compare(objects.IDOfEntry(&a).String(), objects.IDOfEntry(&b).String())
	})
}
