// Package ownership decides which of several ManagedResources owns an object of the target, and what happens to an
// object that one of them leaves.
//
// A decision is a pure function of claims, of the object's origin (MRC-8), and of proofs that it was created for a
// ManagedResource. The package must not depend on how claims are found, or on the cost of requests. The rules (MRB-16,
// MRX-5, MRX-6):
//
//	 the object that a ManagedResource applies                                      | its owner, which alone writes it
//	--------------------------------------------------------------------------------+-----------------------------------------------------
//	 it is new in the inventory, and not created only once (MR-30)                  | the ManagedResource itself: it takes the object over
//	 its origin names another ManagedResource that keeps it, and repairs it         | the one that the origin names
//	 otherwise                                                                      | the ManagedResource itself
//
// The next owner of an object is the same for every caller. It is the first of the claims that keep the object, in
// this order: claims that repair it before claims that create it only once, claims that are not ignored before
// ignored ones, then by name.
package ownership

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// Claim is an entry for the object in the inventory of another ManagedResource that this instance handles.
type Claim struct {
	Owner types.NamespacedName
	ID    objects.ID
	// Keeps is true if the ManagedResource will continue to have the object: it is not being deleted, and no run of
	// it in progress deletes, hands over or releases the object.
	Keeps bool
	// CreateOnly is true if the ManagedResource creates the object only once (MR-30), and does not repair it; Ignored
	// is true if the ManagedResource is ignored, and repairs nothing at present.
	CreateOnly, Ignored bool
}

// Source compares the source in an origin with the source of this instance.
type Source int

// The values of Source.
const (
	// NoOrigin means that the object has no origin annotation.
	NoOrigin Source = iota
	// Unreadable means that the origin cannot be parsed, and therefore names no owner.
	Unreadable
	// ThisSource means that the origin names the source of this instance.
	ThisSource
	// AnotherSource means that the origin names the source of another instance.
	AnotherSource
)

// Origin is the owner in the origin annotation of an object.
type Origin struct {
	Source Source
	// Owner is the ManagedResource in the origin, set for ThisSource and AnotherSource.
	Owner types.NamespacedName
	// Text is the value of the annotation.
	Text string
}

// OriginOf returns the origin of an object. isOfSource reports whether an origin is of this source.
func OriginOf(object metav1.Object, isOfSource func(meta.Origin) bool) Origin {
	text, found := object.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if !found {
		return Origin{}
	}
	origin, err := meta.ParseOrigin(text)
	switch {
	case err != nil:
		return Origin{Source: Unreadable, Text: text}
	case isOfSource(origin):
		return Origin{Source: ThisSource, Owner: origin.Key, Text: text}
	}
	return Origin{Source: AnotherSource, Owner: origin.Key, Text: text}
}

// names reports whether the origin names a ManagedResource of this source.
func (o Origin) names(owner types.NamespacedName) bool {
	return o.Source == ThisSource && o.Owner == owner
}

// isNamed reports whether the origin names any ManagedResource.
func (o Origin) isNamed() bool { return o.Source == ThisSource || o.Source == AnotherSource }

// IsKept reports whether the origin names another ManagedResource that keeps the object and repairs it.
func IsKept(claims []Claim, origin Origin) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool { return c.Keeps && !c.CreateOnly && origin.names(c.Owner) })
}

// NextOwner returns the claim of the next owner if the owner leaves the object; false if no claim keeps it.
func NextOwner(claims []Claim) (Claim, bool) {
	var kept []Claim
	for _, claim := range claims {
		if claim.Keeps {
			kept = append(kept, claim)
		}
	}
	if len(kept) == 0 {
		return Claim{}, false
	}
	return slices.MinFunc(kept, func(a, b Claim) int {
		return cmp.Or(falseFirst(a.CreateOnly, b.CreateOnly), falseFirst(a.Ignored, b.Ignored),
			cmp.Compare(a.Owner.String(), b.Owner.String()))
	}), true
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Left is an object, as read, that a ManagedResource leaves.
type Left struct {
	// By is the ManagedResource that leaves the object, Claims are the claims of the others.
	By     types.NamespacedName
	Claims []Claim
	Origin Origin
	// Created is true if there is other proof than an origin that the object was created for the ManagedResource:
	// this process created it, or the inventory records it (MR-30).
	Created bool
	// KeepObject is true if the object must not be deleted (MRX-5); Collected is true if the garbage collector
	// deletes it (MRX-6).
	KeepObject, Collected bool
	// DeleteForeign is true if objects are deleted regardless of their owner (MRC-3).
	DeleteForeign bool
}

// Action is the decision about an object.
type Action int

// Actions. The zero value keeps the object.
const (
	// Keep leaves the object as it is.
	Keep Action = iota
	// HandOver makes another ManagedResource the origin of the object.
	HandOver
	// Delete deletes the object.
	Delete
)

// Decision is the decision about an object that a ManagedResource leaves, with the reason.
type Decision struct {
	Action Action
	// To is the claim of the next owner in a hand-over.
	To Claim
	// Why is the reason why the object is not deleted.
	Why string
}

// Decide returns the decision about an object that a ManagedResource leaves (MRX-5, MRX-6, MRB-16). An object is
// deleted only if ownership is proven: it has the origin of the ManagedResource, or it was created for the
// ManagedResource and its origin, if any, cannot be parsed.
func Decide(left Left) Decision {
	next, inherited := NextOwner(left.Claims)
	inherited = inherited && !left.DeleteForeign
	own := left.Origin.names(left.By) || !left.Origin.isNamed() && left.Created
	switch {
	case inherited && own:
		// Hand over before the proof of ownership is lost with this ManagedResource: the entry of the next owner may
		// be tentative.
		return Decision{Action: HandOver, To: next, Why: hasIt(next)}
	case left.KeepObject:
		return Decision{Why: "it is annotated with " + resourcesv1alpha1.AnnotationKeepObject}
	case left.Collected:
		return Decision{Why: "the garbage collector deletes it when nothing refers to it"}
	case left.DeleteForeign:
		return Decision{Action: Delete}
	case inherited:
		return Decision{Why: hasIt(next)}
	case own:
		return Decision{Action: Delete}
	}
	return left.foreign()
}

// foreign returns the decision about an object without proof of ownership that no other ManagedResource keeps.
func (left Left) foreign() Decision {
	switch {
	case slices.ContainsFunc(left.Claims, func(c Claim) bool { return left.Origin.names(c.Owner) }):
		return Decision{Why: "it now belongs to ManagedResource " + left.Origin.Text}
	case left.Origin.Source != NoOrigin:
		return Decision{Why: "its origin is " + left.Origin.Text} // It has another owner, regardless of its creator.
	}
	return Decision{Why: "nothing proves that it was created for this ManagedResource: it carries no origin"}
}

func hasIt(claim Claim) string { return "ManagedResource " + claim.Owner.String() + " has it, too" }

// IsRecord reports whether an entry records that an object without an origin was created for the ManagedResource
// (MR-30): its UID matches or, if it has none, its namespace.
func IsRecord(ref *resourcesv1alpha1.ObjectReference, live metav1.Object) bool {
	return meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore) && !meta.Tentative(ref) &&
		(ref.UID == live.GetUID() || ref.UID == "" && ref.Namespace == live.GetNamespace())
}

// IsCollectable reports whether the garbage collector deletes an object (MRX-6).
func IsCollectable(apiVersion, kind string, labels map[string]string) bool {
	return apiVersion == "v1" && (kind == "ConfigMap" || kind == "Secret") &&
		meta.Truthy(labels, resourcesv1alpha1.LabelGarbageCollectableReference)
}
