package steps

import (
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// Owners finds out which ManagedResource has an object.
type Owners struct {
	// Identity is the identity of the source in the origins of objects; it may be empty.
	Identity  string
	Class     meta.Class
	Statuses  *source.Statuses
	Tracker   *objects.Tracker
	Locations Locations
}

// Origin returns the origin that objects of a ManagedResource carry.
func (o Owners) Origin(owner objects.Owner) string {
	return meta.Origin{ClusterID: o.Identity, Key: owner}.String()
}

// IsOfThisSource reports whether an origin names a ManagedResource of this source. If the source has no identity,
// every origin does.
func (o Owners) IsOfThisSource(origin meta.Origin) bool {
	return o.IsKnownSource(origin) || o.Identity == ""
}

// IsKnownSource reports whether an origin has the identity of this source, or none, because it is from before the
// source had one.
func (o Owners) IsKnownSource(origin meta.Origin) bool {
	return origin.ClusterID == o.Identity || origin.ClusterID == ""
}

// IsOrigin reports whether the value of an annotation names a ManagedResource as the origin.
func (o Owners) IsOrigin(owner objects.Owner, value string) bool {
	origin, err := meta.ParseOrigin(value)
	return err == nil && origin.Key == owner && o.IsKnownSource(origin)
}

// CreatedFor returns the UID of the object that this process created for a ManagedResource; empty if there is none.
func (o Owners) CreatedFor(owner objects.Owner, id objects.ID) types.UID {
	if recorded := o.Tracker.Get(id); recorded.CreatedFor == owner {
		return recorded.Created
	}
	return ""
}

// Entry returns the entry of an object in the inventory of a ManagedResource that keeps it; nil if there is none.
func (o Owners) Entry(mr *resourcesv1alpha1.ManagedResource, id objects.ID,
	clusterScoped bool) *resourcesv1alpha1.ObjectReference {
	for _, own := range objects.EntriesOf(mr.Status.Resources) {
		if own.Same(id, clusterScoped) && o.keeps(mr) && !o.Tracker.Releases(OwnerOf(mr), own.ID) {
			return own.Reference
		}
	}
	return nil
}

// keeps reports whether this instance keeps the objects of a ManagedResource. Objects that another class must still
// clean up may be in another cluster.
func (o Owners) keeps(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.DeletionTimestamp == nil && o.Class.Responsible(mr) && !o.Class.WaitsForHandOver(mr)
}

// CreatedOnce reports whether the entry is about an object with the ignore annotation (MR-30).
func CreatedOnce(ref *resourcesv1alpha1.ObjectReference) bool {
	return meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore)
}
