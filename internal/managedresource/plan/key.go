package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Key identifies an object whatever the version it is written in (MRD-12).
type Key struct {
	Group, Kind, Namespace, Name string
}

// String is <group>/<kind>/<namespace>/<name>; inventories are sorted by it.
func (k Key) String() string { return k.Group + "/" + k.Kind + "/" + k.Namespace + "/" + k.Name }

// GroupKind returns the kind without the object.
func (k Key) GroupKind() metav1.GroupKind { return metav1.GroupKind{Group: k.Group, Kind: k.Kind} }

// WithoutNamespace names an object of a kind that has no namespaces, whatever its entry says: the kind may have had
// some, or others may have written it.
func (k Key) WithoutNamespace() Key {
	k.Namespace = ""
	return k
}

// Same reports whether two keys are of one object; those of a cluster-scoped kind are, whatever namespaces they name.
func (k Key) Same(other Key, clusterScoped bool) bool {
	return k == other || clusterScoped && k.WithoutNamespace() == other.WithoutNamespace()
}

func newKey(gvk schema.GroupVersionKind, namespace, name string) Key {
	return Key{gvk.Group, gvk.Kind, namespaceOrDefault(gvk.Kind, namespace), name}
}

// KeyOf returns the key of an object.
func KeyOf(object *unstructured.Unstructured) Key {
	return newKey(object.GroupVersionKind(), object.GetNamespace(), object.GetName())
}

// KeyOfReference returns the key of an entry of the inventory.
func KeyOfReference(ref *corev1.ObjectReference) Key {
	return newKey(ref.GroupVersionKind(), ref.Namespace, ref.Name)
}

// ObjectName names an object in messages, <apiVersion>/<kind>/<namespace>/<name> (MR-28).
func ObjectName(apiVersion, kind, namespace, name string) string {
	return apiVersion + "/" + kind + "/" + namespaceOrDefault(kind, namespace) + "/" + name
}

// NameOf names an object in messages.
func NameOf(object *unstructured.Unstructured) string {
	return ObjectName(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName())
}

// NameOfReference names an entry of the inventory in messages.
func NameOfReference(ref *corev1.ObjectReference) string {
	return ObjectName(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
}

func namespaceOrDefault(kind, namespace string) string {
	if namespace == "" && kind != "Namespace" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// SortReferences sorts an inventory (MRS-7).
func SortReferences(refs []resourcesv1alpha1.ObjectReference) {
	slices.SortStableFunc(refs, func(a, b resourcesv1alpha1.ObjectReference) int {
		return strings.Compare(KeyOfReference(&a.ObjectReference).String(), KeyOfReference(&b.ObjectReference).String())
	})
}
