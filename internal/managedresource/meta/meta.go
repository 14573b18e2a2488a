// Package meta interprets a ManagedResource before anything is done with it: the responsible instance, whether it is
// ignored, the origin of its objects, and the changes of its conditions.
//
// Pure functions over the API type; the three controllers of ManagedResources share them.
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

// Truthy reports whether the annotation's value is one that strconv.ParseBool takes for true.
func Truthy(annotations map[string]string, key string) bool {
	value, err := strconv.ParseBool(annotations[key])
	return err == nil && value
}

// WaitsForState reports whether the operation annotation forbids every step, even deletion (MRT-7).
func WaitsForState(mr metav1.Object) bool {
	return mr.GetAnnotations()[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}

// Ignored reports whether a ManagedResource is to be left alone (MR-3).
func Ignored(mr metav1.Object) bool {
	return Truthy(mr.GetAnnotations(), resourcesv1alpha1.AnnotationIgnore)
}

// Class is the class an instance is configured with (MRK-1 … MRK-3).
type Class string

// NewClass returns the class of an instance; empty means the default.
func NewClass(configured string) Class {
	if configured == "" {
		configured = resourcesv1alpha1.DefaultClass
	}
	return Class(configured)
}

// Responsible reports whether the instance looks after the ManagedResource (MRK-2).
func (c Class) Responsible(mr *resourcesv1alpha1.ManagedResource) bool {
	wanted := ""
	if mr.Spec.Class != nil {
		wanted = *mr.Spec.Class
	}
	return c == resourcesv1alpha1.AllClasses || string(c) == wanted ||
		(wanted == "" && c == resourcesv1alpha1.DefaultClass)
}

// Finalizer is the finalizer that the instance sets (MRK-3).
func (c Class) Finalizer() string {
	if c == resourcesv1alpha1.DefaultClass || c == resourcesv1alpha1.AllClasses {
		return resourcesv1alpha1.FinalizerName
	}
	return resourcesv1alpha1.FinalizerName + "-" + string(c)
}

// Owns reports whether the instance's finalizer is set.
func (c Class) Owns(mr metav1.Object) bool {
	return slices.Contains(mr.GetFinalizers(), c.Finalizer())
}

// Handles reports whether the instance has anything to do with the ManagedResource (MRK-4).
func (c Class) Handles(mr *resourcesv1alpha1.ManagedResource) bool {
	return c.Owns(mr) || c.Responsible(mr)
}

// MovedAway reports whether the ManagedResource went to another class, so that its objects must go here (MRK-5).
func (c Class) MovedAway(mr *resourcesv1alpha1.ManagedResource) bool {
	return c.Owns(mr) && !c.Responsible(mr)
}

// WaitsForHandOver reports whether another class has not cleaned up yet (MRK-6). All finalizers count, not only the
// first one (MRB-23).
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

// SameDesiredState reports whether two forms of a ManagedResource ask for the same state: a plan for one form may be
// carried out and reported for the other. The inventory is part of the state: a writer that changed the inventory has
// changed objects, too.
func (c Class) SameDesiredState(a, b *resourcesv1alpha1.ManagedResource) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		Ignored(a) == Ignored(b) && SameHold(a, b) && c.Owns(a) == c.Owns(b) &&
		c.WaitsForHandOver(a) == c.WaitsForHandOver(b) &&
		SameInventory(a.Status.Resources, b.Status.Resources)
}

// SameHold reports whether two forms of a ManagedResource have the same hold, and allow the same holds on objects.
func SameHold(a, b *resourcesv1alpha1.ManagedResource) bool {
	return !slices.ContainsFunc([]string{
		resourcesv1alpha1.AnnotationLeaveAloneUntil, resourcesv1alpha1.AnnotationAllowHolds,
	}, func(name string) bool {
		was, found := a.Annotations[name]
		is, still := b.Annotations[name]
		return found != still || was != is
	})
}

// SameInventory compares inventories; nil and empty are the same.
func SameInventory(a, b []resourcesv1alpha1.ObjectReference) bool {
	return len(a) == 0 && len(b) == 0 || equality.Semantic.DeepEqual(a, b)
}

// InventoryDigest stands for an inventory: those that SameInventory takes for the same have the same one.
func InventoryDigest(inventory []resourcesv1alpha1.ObjectReference) uint64 {
	digest := fnv.New64a()
	lines := json.NewEncoder(digest)
	for i := range inventory {
		_ = lines.Encode(&inventory[i]) // Texts, and maps of texts.
	}
	return digest.Sum64()
}

// planned marks an entry of the inventory whose object carries no origin (MR-30) and was not created by us: not yet, or
// it was there before. It is kept in a field that has no meaning for whole objects, and that every version of the
// CustomResourceDefinition has.
const planned = "planned"

// AsTentative returns the entry of such an object: a record that it may be there, but no record that it is ours.
func AsTentative(ref resourcesv1alpha1.ObjectReference) resourcesv1alpha1.ObjectReference {
	ref.FieldPath = planned
	return ref
}

// Tentative reports whether an entry of the inventory is no record that the object is ours.
func Tentative(ref *resourcesv1alpha1.ObjectReference) bool { return ref.FieldPath == planned }

// Origin is the content of the origin annotation: the identity of the source cluster and the ManagedResource (MRC-8).
type Origin struct {
	ClusterID string
	Key       types.NamespacedName
}

// String is the annotation's value.
func (o Origin) String() string {
	if o.ClusterID == "" {
		return o.Key.String()
	}
	return o.ClusterID + ":" + o.Key.String()
}

// ParseOrigin reads the annotation's value.
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
