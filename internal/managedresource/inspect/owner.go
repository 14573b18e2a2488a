package inspect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Proof is the evidence that a ManagedResource owns an object.
type Proof string

// The values of Proof, which reports show unchanged.
const (
	// ByOrigin means that the origin annotation names the ManagedResource, and its inventory has the object.
	ByOrigin Proof = "origin annotation"
	// ByInventory means that only the inventory has the object: it has no origin, or the origin names a
	// ManagedResource that does not exist.
	ByInventory Proof = "inventory"
	// ByManifest means that the origin annotation names the ManagedResource, but its inventory does not have the
	// object yet.
	ByManifest Proof = "origin annotation; its inventory does not have the object yet"
)

// OriginOf returns the origin of a live object; false if there is none, or if it cannot be parsed.
func OriginOf(live *unstructured.Unstructured) (meta.Origin, bool) {
	if live == nil {
		return meta.Origin{}, false
	}
	origin, err := meta.ParseOrigin(live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin])
	return origin, err == nil
}

// FindOwner returns the ManagedResource that owns an object: the one that the origin of the object names or, if it
// was not read, the next owner that has the object in its inventory.
func FindOwner(key objects.ID, clusterScoped bool, live *unstructured.Unstructured,
	read []*resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, Proof) {
	origin, named := OriginOf(live)
	if named {
		at := slices.IndexFunc(read, func(mr *resourcesv1alpha1.ManagedResource) bool { return keyOf(mr) == origin.Key })
		switch {
		case at < 0:
		case EntryOf(read[at], key, clusterScoped) != nil:
			return read[at], ByOrigin
		case metav1.GetControllerOf(live) == nil:
			return read[at], ByManifest // An object with a controller may have got a copy of the annotation from it.
		}
	}
	var claims []ownership.Claim
	for _, mr := range read {
		if entry := EntryOf(mr, key, clusterScoped); entry != nil {
			claims = append(claims, claimOf(mr, entry))
		}
	}
	next, found := ownership.NextOwner(claims)
	if !found {
		return nil, ""
	}
	return read[slices.IndexFunc(read,
		func(mr *resourcesv1alpha1.ManagedResource) bool { return keyOf(mr) == next.Owner })], ByInventory
}

func keyOf(mr *resourcesv1alpha1.ManagedResource) types.NamespacedName {
	return types.NamespacedName{Namespace: mr.Namespace, Name: mr.Name}
}

// EntryOf returns the entry of an object in the inventory of a ManagedResource, nil if there is none.
func EntryOf(mr *resourcesv1alpha1.ManagedResource, key objects.ID,
	clusterScoped bool) *resourcesv1alpha1.ObjectReference {
	keys := plan.NewEquivalences(mr.Spec.Equivalences).Keys(key)
	for i := range mr.Status.Resources {
		entry := &mr.Status.Resources[i]
		own := objects.IDOfEntry(entry)
		if slices.ContainsFunc(keys, func(key objects.ID) bool { return own.Same(key, clusterScoped) }) {
			return entry
		}
	}
	return nil
}

// claimOf returns the claim of a ManagedResource on an object of its inventory. It keeps the object, even during a
// deletion, because nothing else is known here.
func claimOf(mr *resourcesv1alpha1.ManagedResource, entry *resourcesv1alpha1.ObjectReference) ownership.Claim {
	return ownership.Claim{
		Owner: keyOf(mr), ID: objects.IDOfEntry(entry), Keeps: true,
		CreateOnly: meta.Truthy(entry.Annotations, resourcesv1alpha1.AnnotationIgnore), Ignored: meta.Ignored(mr),
	}
}

// ClassOf returns the class of a ManagedResource.
func ClassOf(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Spec.Class == nil || *mr.Spec.Class == "" {
		return resourcesv1alpha1.DefaultClass
	}
	return *mr.Spec.Class
}
