package managedresource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/ledger"
	"github.com/espalier-project/espalier/internal/managed"
	"github.com/espalier-project/espalier/internal/target"
)

// holders are the other ManagedResources that have objects in their inventories.
type holders struct {
	// any has those by key and name, kept those that are to stay.
	any  map[apply.Key]map[ledger.Owner]struct{}
	kept map[apply.Key]ledger.Owner
}

// holdersOf looks for objects in the inventories of all other ManagedResources of the source.
func (r *Reconciler) holdersOf(ctx context.Context, except ledger.Owner, refs []resourcesv1alpha1.ObjectReference) (holders, error) {
	h := holders{map[apply.Key]map[ledger.Owner]struct{}{}, map[apply.Key]ledger.Owner{}}
	if len(refs) == 0 {
		return h, nil
	}
	wanted := make(map[apply.Key]struct{}, len(refs))
	for i := range refs {
		wanted[apply.KeyOfReference(&refs[i].ObjectReference)] = struct{}{}
	}
	err := r.Statuses.Others(ctx, except, func(other *resourcesv1alpha1.ManagedResource) {
		for i := range other.Status.Resources {
			key := apply.KeyOfReference(&other.Status.Resources[i].ObjectReference)
			if _, found := wanted[key]; !found {
				continue
			}
			if h.any[key] == nil {
				h.any[key] = map[ledger.Owner]struct{}{}
			}
			h.any[key][ownerOf(other)] = struct{}{}
			if other.DeletionTimestamp == nil {
				h.kept[key] = ownerOf(other)
			}
		}
	})
	if err != nil {
		return h, fmt.Errorf("looking for other ManagedResources that have the objects: %w", err)
	}
	return h, nil
}

func (h holders) has(key apply.Key, owner ledger.Owner) bool {
	_, found := h.any[key][owner]
	return found
}

// stays says why an object must not be deleted, "" if it may be (MRX-5, MRX-6, MRB-16). What may be deleted is ours, and proven
// to be: it carries the origin of the ManagedResource, or this process wrote it, or it was created without an origin and the
// inventory says so.
func (r *Reconciler) stays(mr *resourcesv1alpha1.ManagedResource, ref *resourcesv1alpha1.ObjectReference, live *unstructured.Unstructured, others holders) string {
	annotations := live.GetAnnotations()
	if managed.Truthy(annotations, resourcesv1alpha1.AnnotationKeepObject) {
		return "it is annotated with " + resourcesv1alpha1.AnnotationKeepObject
	}
	collectable := live.GetAPIVersion() == "v1" && (live.GetKind() == "ConfigMap" || live.GetKind() == "Secret") &&
		managed.Truthy(live.GetLabels(), resourcesv1alpha1.LabelGarbageCollectableReference)
	if r.GarbageCollector && collectable {
		return "the garbage collector deletes it when nothing refers to it"
	}
	if *r.Config.DeleteForeignObjects {
		return ""
	}
	key := apply.KeyOfReference(&ref.ObjectReference)
	if other, found := others.kept[key]; found {
		return "ManagedResource " + other.String() + " has it, too"
	}
	// The identity of the cluster may have been configured anew since; another key is another ManagedResource.
	value, found := annotations[resourcesv1alpha1.AnnotationOrigin]
	origin, err := managed.ParseOrigin(value)
	switch {
	case found && err == nil && origin.Key == ownerOf(mr):
		return ""
	case found && err == nil && others.has(key, origin.Key):
		return "it belongs to ManagedResource " + value + " by now"
	case r.Ledger.IsOurs(target.RefOf(ref).Key, live.GetUID()):
		return ""
	case found:
		return "its origin is " + value
	case createdOnce(ref) && !managed.Planned(ref) && (ref.UID == "" || ref.UID == live.GetUID()):
		return "" // Such objects carry no origin; their entry is the record.
	}
	return "nothing proves that it was created for this ManagedResource: it carries no origin"
}

// createdOnce says whether the entry is about an object with the ignore annotation (MR-30).
func createdOnce(ref *resourcesv1alpha1.ObjectReference) bool {
	return managed.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore)
}

// ownerOfOrigin is the other ManagedResource that keeps an object though this one has it, too: the one whose inventory got it
// last, and the origin says which that is. The object is written as this manifest says, but its origin stays. Without this rule a
// restart would give the object back to its former owner, which deletes it once its manifest no longer has it.
func (a *applier) ownerOfOrigin(ctx context.Context, desired *apply.Desired, live *unstructured.Unstructured) (ledger.Owner, string, error) {
	var nobody ledger.Owner
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if !found || desired.CreateOnly {
		return nobody, "", nil
	}
	origin, err := managed.ParseOrigin(value)
	if err != nil || origin.Key == ownerOf(a.mr) {
		return nobody, "", nil
	}
	if desired.Old != nil && !managed.Planned(desired.Old) && origin.ClusterID == a.Identity {
		others, err := a.holdersOf(ctx, ownerOf(a.mr), []resourcesv1alpha1.ObjectReference{desired.Reference})
		if err != nil {
			return nobody, "", err
		}
		if others.kept[desired.Key] == origin.Key {
			return origin.Key, value, nil
		}
	}
	takeovers.Inc()
	log.FromContext(ctx).Info("Taking over an object of another ManagedResource", "resource", desired.Name(), "origin", value)
	return nobody, "", nil
}
