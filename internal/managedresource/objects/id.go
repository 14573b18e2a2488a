package objects

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// ID identifies an object of the target, whatever the version it is written in (MRD-12). The namespace of an object
// that names none is the default one, so that an entry of an inventory finds its object before and after the scope of
// the kind is known; only a Namespace has none.
type ID struct {
	Group, Kind, Namespace, Name string
}

// NewID returns the ID of an object.
func NewID(kind schema.GroupKind, namespace, name string) ID {
	return ID{kind.Group, kind.Kind, NamespaceOf(kind.Kind, namespace), name}
}

// NamespaceOf returns the namespace of an object of a kind that names one, or none.
func NamespaceOf(kind, namespace string) string {
	if kind == "Namespace" {
		return namespace
	}
	return cmp.Or(namespace, metav1.NamespaceDefault)
}

// IDOf returns the ID of an object.
func IDOf(object *unstructured.Unstructured) ID {
	return NewID(object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName())
}

// IDOfEntry returns the ID of the object of an entry of an inventory.
func IDOfEntry(entry *resourcesv1alpha1.ObjectReference) ID {
	return NewID(entry.GroupVersionKind().GroupKind(), entry.Namespace, entry.Name)
}

// String is <group>/<kind>/<namespace>/<name>; inventories are sorted by it.
func (id ID) String() string { return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name }

// GroupKind returns the kind without the object.
func (id ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: id.Group, Kind: id.Kind} }

// Same reports whether two IDs are of one object. Entries for objects of a cluster-scoped kind may name any namespace:
// the kind may have had some, or others may have written it.
func (id ID) Same(other ID, clusterScoped bool) bool {
	if clusterScoped {
		other.Namespace = id.Namespace
	}
	return id == other
}

// Ref is an object in the version in which its manifest has it.
type Ref struct {
	ID
	Version string
}

// RefOf returns the object of an entry of an inventory.
func RefOf(entry *resourcesv1alpha1.ObjectReference) Ref {
	return Ref{IDOfEntry(entry), entry.GroupVersionKind().Version}
}

// Entry is an entry of an inventory, with the object that it is about.
type Entry struct {
	Ref
	Reference *resourcesv1alpha1.ObjectReference
}

// EntriesOf returns the entries of an inventory.
func EntriesOf(inventory []resourcesv1alpha1.ObjectReference) []Entry {
	entries := make([]Entry, len(inventory))
	for i := range inventory {
		entries[i] = Entry{RefOf(&inventory[i]), &inventory[i]}
	}
	return entries
}

// GVK returns the kind of the object with its version.
func (r Ref) GVK() schema.GroupVersionKind { return r.GroupKind().WithVersion(r.Version) }
