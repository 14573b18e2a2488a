package objects

import (
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// RefOf returns the object of an entry of an inventory.
func RefOf(ref *resourcesv1alpha1.ObjectReference) Ref {
	gvk := ref.GroupVersionKind()
	return Ref{
		Key:     Key{GroupKind: gvk.GroupKind(), Namespace: ref.Namespace, Name: ref.Name},
		Version: gvk.Version, Unlabelled: meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore),
	}
}
