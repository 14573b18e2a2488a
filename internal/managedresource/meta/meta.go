// Package meta interprets a ManagedResource before it is reconciled: the responsible instance, whether it is ignored,
// the origin of its objects, and the changes of its conditions.
//
// It has pure functions over the API type, which the three controllers of ManagedResources share.
package meta

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// Truthy reports whether strconv.ParseBool parses the value of the annotation as true.
func Truthy(annotations map[string]string, key string) bool {
	value, err := strconv.ParseBool(annotations[key])
	return err == nil && value
}

// WaitsForState reports whether the operation annotation forbids all actions, even deletion (MRT-7).
func WaitsForState(mr metav1.Object) bool {
	return mr.GetAnnotations()[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}

// Ignored reports whether a ManagedResource has the ignore annotation (MR-3).
func Ignored(mr metav1.Object) bool {
	return Truthy(mr.GetAnnotations(), resourcesv1alpha1.AnnotationIgnore)
}

// Class is the configured class of an instance (MRK-1 … MRK-3).
type Class string

// NewClass returns the class of an instance; an empty value means the default.
func NewClass(configured string) Class {
	if configured == "" {
		configured = resourcesv1alpha1.DefaultClass
	}
	return Class(configured)
}

// Responsible reports whether the instance is responsible for the ManagedResource (MRK-2).
func (c Class) Responsible(mr *resourcesv1alpha1.ManagedResource) bool {
	wanted := ""
	if mr.Spec.Class != nil {
		wanted = *mr.Spec.Class
	}
	return c == resourcesv1alpha1.AllClasses || string(c) == wanted ||
		(wanted == "" && c == resourcesv1alpha1.DefaultClass)
}

// Finalizer returns the finalizer that the instance sets (MRK-3).
func (c Class) Finalizer() string {
	if c == resourcesv1alpha1.DefaultClass || c == resourcesv1alpha1.AllClasses {
		return resourcesv1alpha1.FinalizerName
	}
	return resourcesv1alpha1.FinalizerName + "-" + string(c)
}

// Owns reports whether the finalizer of the instance is set.
func (c Class) Owns(mr metav1.Object) bool {
	return slices.Contains(mr.GetFinalizers(), c.Finalizer())
}

// Handles reports whether the instance reconciles or cleans up the ManagedResource (MRK-4).
func (c Class) Handles(mr *resourcesv1alpha1.ManagedResource) bool {
	return c.Owns(mr) || c.Responsible(mr)
}

// MovedAway reports whether the ManagedResource has moved to another class, so that its objects in this target must
// be deleted (MRK-5).
func (c Class) MovedAway(mr *resourcesv1alpha1.ManagedResource) bool {
	return c.Owns(mr) && !c.Responsible(mr)
}

// WaitsForHandOver reports whether another class has not cleaned up yet (MRK-6). It checks all finalizers, not only
// the first one (MRB-23).
func (c Class) WaitsForHandOver(mr *resourcesv1alpha1.ManagedResource) bool {
	if !c.Responsible(mr) {
		return false
	}
	for _, finalizer := range mr.GetFinalizers() {
		if strings.HasPrefix(finalizer, resourcesv1alpha1.FinalizerName) && finalizer != c.Finalizer() {
			return true
		}
	}
	return false
}

// SameDesiredState reports whether two versions of a ManagedResource have the same desired state, so that a plan for
// one can be carried out and reported for the other. The inventory is part of the state: a writer that changed it has
// changed objects, too.
func (c Class) SameDesiredState(a, b *resourcesv1alpha1.ManagedResource) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		Ignored(a) == Ignored(b) && SameHold(a, b) && c.Owns(a) == c.Owns(b) &&
		c.WaitsForHandOver(a) == c.WaitsForHandOver(b) &&
		SameInventory(a.Status.Resources, b.Status.Resources)
}

// SameHold reports whether two versions of a ManagedResource have the same hold, and allow the same holds on objects.
func SameHold(a, b *resourcesv1alpha1.ManagedResource) bool {
	return !slices.ContainsFunc([]string{
		resourcesv1alpha1.AnnotationLeaveAloneUntil, resourcesv1alpha1.AnnotationAllowHolds,
	}, func(name string) bool {
		was, found := a.Annotations[name]
		is, still := b.Annotations[name]
		return found != still || was != is
	})
}

// SameInventory compares inventories; nil and empty are equal.
func SameInventory(a, b []resourcesv1alpha1.ObjectReference) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

// InventoryDigest returns a digest of an inventory, which is equal for inventories that SameInventory reports as
// equal.
func InventoryDigest(inventory []resourcesv1alpha1.ObjectReference) uint64 {
	digest := fnv.New64a()
	lines := json.NewEncoder(digest)
	for i := range inventory {
		_ = lines.Encode(&inventory[i]) // Only strings and maps of strings, which cannot fail.
	}
	return digest.Sum64()
}

// planned marks an inventory entry whose object has no origin (MR-30) and was not created by this ManagedResource:
// not yet, or because it already existed. The mark is in fieldPath, which has no meaning for complete objects and is
// in every version of the CustomResourceDefinition.
const planned = "planned"

// AsTentative returns the entry with the mark that it does not prove ownership of the object.
func AsTentative(ref resourcesv1alpha1.ObjectReference) resourcesv1alpha1.ObjectReference {
	ref.FieldPath = planned
	return ref
}

// Tentative reports whether an inventory entry does not prove ownership of the object.
func Tentative(ref *resourcesv1alpha1.ObjectReference) bool { return ref.FieldPath == planned }

// Origin is the content of the origin annotation: the identity of the source cluster and the ManagedResource (MRC-8).
type Origin struct {
	ClusterID string
	Key       types.NamespacedName
}

// String returns the value of the annotation.
func (o Origin) String() string {
	if o.ClusterID == "" {
		return o.Key.String()
	}
	return o.ClusterID + ":" + o.Key.String()
}

// ParseOrigin parses the value of the annotation.
func ParseOrigin(value string) (Origin, error) {
	var origin Origin
	parts := strings.Split(value, ":")
	key := parts[0]
	if len(parts) == 2 {
		origin.ClusterID, key = parts[0], parts[1]
	}
	namespace, name, found := strings.Cut(key, "/")
	if len(parts) > 2 || !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Origin{}, fmt.Errorf("unexpected origin %q: want <namespace>/<name> or <cluster>:<namespace>/<name>", value)
	}
	origin.Key = types.NamespacedName{Namespace: namespace, Name: name}
	return origin, nil
}
