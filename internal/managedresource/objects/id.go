package objects

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// ID identifies an object of the target, regardless of its version (MRD-12). Objects without a namespace get the
// default namespace, except Namespaces, so that an inventory entry matches its object before and after the scope of
// the kind is known.
type ID struct {
	Group, Kind, Namespace, Name string
}

// NewID returns the ID of an object.
func NewID(kind schema.GroupKind, namespace, name string) ID {
	return ID{kind.Group, kind.Kind, NamespaceOf(kind.Kind, namespace), name}
}

// NamespaceOf returns the namespace of an object's ID.
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

// String returns <group>/<kind>/<namespace>/<name>, by which inventories are sorted.
func (id ID) String() string { return id.Group + "/" + id.Kind + "/" + id.Namespace + "/" + id.Name }

// GroupKind returns the kind of the object.
func (id ID) GroupKind() schema.GroupKind { return schema.GroupKind{Group: id.Group, Kind: id.Kind} }

// Same reports whether two IDs identify one object. Entries of cluster-scoped objects may have any namespace: the
// kind may have been namespaced before, or another writer wrote them.
func (id ID) Same(other ID, clusterScoped bool) bool {
	if clusterScoped {
		other.Namespace = id.Namespace
	}
	return id == other
}

// Ref is an object with the version of its manifest.
type Ref struct {
	ID
	Version string
}

// RefOf returns the object of an inventory entry.
func RefOf(entry *resourcesv1alpha1.ObjectReference) Ref {
	return Ref{IDOfEntry(entry), entry.GroupVersionKind().Version}
}

// Entry is an inventory entry with its object.
type Entry struct {
	Ref
	Reference *resourcesv1alpha1.ObjectReference
}

// EntriesOf returns the entries of an inventory with their objects.
func EntriesOf(inventory []resourcesv1alpha1.ObjectReference) []Entry {
	entries := make([]Entry, len(inventory))
	for i := range inventory {
		entries[i] = Entry{RefOf(&inventory[i]), &inventory[i]}
	}
	return entries
}

// GVK returns the group, version and kind of the object.
func (r Ref) GVK() schema.GroupVersionKind { return r.GroupKind().WithVersion(r.Version) }
