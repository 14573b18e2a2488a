// Package ownership decides which ManagedResource owns an object of the target that several have, and what becomes of
// an object that one of them leaves.
//
// A decision is a pure function of claims, of the origin that the object carries (MRC-8), and of proofs that it was
// created for a ManagedResource. The package must not know how claims are found, nor what a request costs. The rules
// (MRB-16, MRX-5, MRX-6):
//
//	 the object that a ManagedResource applies                                      | its owner, which alone writes it
//	--------------------------------------------------------------------------------+-----------------------------------------------------
//	 it is new in the inventory, and not created only once (MR-30)                  | the ManagedResource itself: it takes the object over
//	 its origin names another ManagedResource that keeps it, and repairs it         | the one that the origin names
//	 otherwise                                                                      | the ManagedResource itself
//
// The next owner of an object is the same for every caller. Of the claims that keep the object, a claim that repairs it
// comes before a claim that creates it only once; a claim that is not ignored comes before an ignored one; then the
// first by name.
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

// Claim is an entry for the object in the inventory of another ManagedResource that this instance has to do with.
type Claim struct {
	Owner types.NamespacedName
	ID    objects.ID
	// Keeps is true if the ManagedResource goes on having the object: it is not being deleted, and no run of it that is
	// under way deletes, hands over or releases the object.
	Keeps bool
	// CreateOnly is true if the ManagedResource creates the object only once (MR-30), and does not repair it; Ignored if
	// it repairs nothing at present.
	CreateOnly, Ignored bool
}

// Source is the source of an origin.
type Source int

// Sources of an origin.
const (
	// NoOrigin is that of an object without the annotation.
	NoOrigin Source = iota
	// Unreadable is an origin that cannot be parsed: it names no owner.
	Unreadable
	// ThisSource is the source of this instance.
	ThisSource
	// AnotherSource is the source of some other instance.
	AnotherSource
)

// Origin is the owner that the object's annotation names.
type Origin struct {
	Source Source
	// Owner is the named ManagedResource, set for ThisSource and AnotherSource.
	Owner types.NamespacedName
	// Text is the value of the annotation.
	Text string
}

// OriginOf returns the owner that an object names. isOfSource reports whether an origin is of this source.
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

// IsKept reports whether another ManagedResource, which the origin names, owns an object and repairs it.
func IsKept(claims []Claim, origin Origin) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool { return c.Keeps && !c.CreateOnly && origin.names(c.Owner) })
}

// NextOwner returns the claim that an object goes to if its owner leaves it; false if no claim keeps it.
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

// Left is an object that a ManagedResource leaves, as it was read.
type Left struct {
	// By is the ManagedResource, Claims those of the others.
	By     types.NamespacedName
	Claims []Claim
	Origin Origin
	// Created is true if it is proven in another way than by an origin that the object was created for the
	// ManagedResource: this process did it, or the inventory is the record (MR-30).
	Created bool
	// KeepObject is true if the object must not be deleted (MRX-5), Collected if the garbage collector deletes it
	// (MRX-6).
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

// Decision is the decision about an object that a ManagedResource leaves, with its reason.
type Decision struct {
	Action Action
	// To is the claim that the object is handed over to.
	To Claim
	// Why is the reason why the object stays.
	Why string
}

// Decide returns the decision about an object that a ManagedResource leaves (MRX-5, MRX-6, MRB-16). An object is
// deleted only if it is proven to be ours: it carries the origin of the ManagedResource, or it was created for the
// ManagedResource and its origin, if there is one, cannot be parsed.
func Decide(left Left) Decision {
	next, inherited := NextOwner(left.Claims)
	inherited = inherited && !left.DeleteForeign
	own := left.Origin.names(left.By) || !left.Origin.isNamed() && left.Created
	switch {
	case inherited && own:
		// The proof of ownership goes with this ManagedResource: the entry of the next owner may be planned only.
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

// foreign returns the decision about an object that is not proven to be ours, and that no other ManagedResource keeps.
func (left Left) foreign() Decision {
	switch {
	case slices.ContainsFunc(left.Claims, func(c Claim) bool { return left.Origin.names(c.Owner) }):
		return Decision{Why: "it now belongs to ManagedResource " + left.Origin.Text}
	case left.Origin.Source != NoOrigin:
		return Decision{Why: "its origin is " + left.Origin.Text} // Another owner has it, whoever created it.
	}
	return Decision{Why: "nothing proves that it was created for this ManagedResource: it carries no origin"}
}

func hasIt(claim Claim) string { return "ManagedResource " + claim.Owner.String() + " has it, too" }

// IsRecord reports whether an entry is the record that an object without an origin was created for the ManagedResource
// (MR-30): by its UID or, if it has none, by its namespace.
func IsRecord(ref *resourcesv1alpha1.ObjectReference, live metav1.Object) bool {
	return meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore) && !meta.Tentative(ref) &&
		(ref.UID == live.GetUID() || ref.UID == "" && ref.Namespace == live.GetNamespace())
}

// IsCollectable reports whether the garbage collector deletes an object (MRX-6).
func IsCollectable(apiVersion, kind string, labels map[string]string) bool {
	return apiVersion == "v1" && (kind == "ConfigMap" || kind == "Secret") &&
		meta.Truthy(labels, resourcesv1alpha1.LabelGarbageCollectableReference)
}
