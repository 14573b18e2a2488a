package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// Ignored is a part of an object or ManagedResource that an annotation exempts from repair.
type Ignored struct {
	// The fields are the exempted part, and the object with the annotation.
	What       string `json:"what"`
	Where      string `json:"where"`
	Annotation string `json:"annotation"`
	Value      string `json:"value"`
	// Since and By are from managed fields; they are empty if the managed fields lack them.
	Since *metav1.Time `json:"since,omitempty"`
	By    string       `json:"by,omitempty"`
	// Everything is true if nothing of the object is repaired.
	Everything bool `json:"everything,omitempty"`
}

// place is an object that may have annotations that exempt something from repair.
type place int

const (
	onManagedResource place = 1 << iota
	inManifest
	onLiveObject
)

var placeNames = map[place]string{onManagedResource: "on the ManagedResource", inManifest: "in the manifest",
	onLiveObject: "on the live object"}

// leavesAlone returns the part that the value of an annotation exempts from repair, "" for none, and whether this is
// everything.
type leavesAlone func(value string) (what string, everything bool)

// annotations has all annotations that exempt something from repair, except holds.
var annotations = []struct {
	name  string
	on    place
	means leavesAlone
}{
	{resourcesv1alpha1.AnnotationIgnore, onManagedResource,
		ifTrue("everything: nothing of the ManagedResource is applied, repaired or deleted", true)},
	{resourcesv1alpha1.AnnotationIgnore, inManifest,
		ifTrue("everything once the object exists: it is created, and not repaired", true)},
	{resourcesv1alpha1.AnnotationMode, inManifest, func(value string) (string, bool) {
		if value != resourcesv1alpha1.ModeIgnore {
			return "", false
		}
		return "everything: the object is released, and has no owner", true
	}},
	{resourcesv1alpha1.AnnotationPreserveReplicas, inManifest, ifLiteral("spec.replicas")},
	{resourcesv1alpha1.AnnotationPreserveResources, inManifest, ifLiteral("resources of containers")},
	{resourcesv1alpha1.AnnotationSkipHealthCheck, onLiveObject,
		ifLiteral("its health: it counts as healthy and rolled out")},
}

func ifTrue(what string, everything bool) leavesAlone {
	return func(value string) (string, bool) {
		if !meta.Truthy(map[string]string{"": value}, "") {
			return "", false
		}
		return what, everything
	}
}

func ifLiteral(what string) leavesAlone {
	return func(value string) (string, bool) {
		if strings.TrimSpace(value) != "true" {
			return "", false
		}
		return what, false
	}
}

// ignoredOn returns the exemptions by annotations of an object.
func ignoredOn(object metav1.Object, on place, now time.Time) []Ignored {
	var all []Ignored
	for _, a := range annotations {
		value, found := object.GetAnnotations()[a.name]
		if !found || a.on&on == 0 {
			continue
		}
		what, everything := a.means(value)
		if what == "" {
			continue
		}
		ignored := Ignored{What: what, Where: placeNames[on], Annotation: a.name, Value: value, Everything: everything}
		if writer := writerOf(object, "metadata", "annotations", a.name); writer != nil {
			ignored.Since, ignored.By = writer.Time, writer.Manager
		}
		all = append(all, ignored)
	}
	return append(all, heldOn(object, on, now)...)
}

// heldOn returns the exemption by the hold on the object, if it is in force.
func heldOn(object metav1.Object, on place, now time.Time) []Ignored {
	held := hold.Of(object.GetAnnotations(), now)
	if on == inManifest || held.State != hold.InForce {
		return nil // Holds in manifests have no effect.
	}
	ignored := Ignored{What: "everything " + held.String(), Where: placeNames[on],
		Annotation: resourcesv1alpha1.AnnotationLeaveAloneUntil,
		Value:      object.GetAnnotations()[resourcesv1alpha1.AnnotationLeaveAloneUntil], Everything: true}
	if by, at := hold.SetBy(object.GetManagedFields()); by != "" {
		since := metav1.NewTime(at)
		ignored.By, ignored.Since = by, &since
	}
	return []Ignored{ignored}
}

// allowsHolds reports whether a hold on an object is allowed. If the ManagedResource has no annotation about it, the
// configuration of resource-manager decides, which is unknown here. The hold is then allowed if the condition of the
// ManagedResource names the object as left alone.
func allowsHolds(mr *resourcesv1alpha1.ManagedResource, live *unstructured.Unstructured) bool {
	if allowed, err := strconv.ParseBool(mr.Annotations[resourcesv1alpha1.AnnotationAllowHolds]); err == nil {
		return allowed
	}
	applied := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	return applied != nil && live != nil && slices.Contains(meta.LeftAloneIn(applied.Message),
		meta.ObjectName(live.GetKind(), live.GetNamespace(), live.GetName()))
}

// holdUndecided reports whether a live object has a hold, and only the unknown configuration of resource-manager
// decides whether it is allowed.
func holdUndecided(mr *resourcesv1alpha1.ManagedResource, live *unstructured.Unstructured, now time.Time) bool {
	if live == nil || allowsHolds(mr, live) || len(heldOn(live, onLiveObject, now)) == 0 {
		return false
	}
	_, err := strconv.ParseBool(mr.Annotations[resourcesv1alpha1.AnnotationAllowHolds])
	return err != nil
}

// effectOf returns the combined effect of the holds on a ManagedResource and on one of its objects.
func effectOf(mr *resourcesv1alpha1.ManagedResource, live *unstructured.Unstructured, now time.Time) hold.Effect {
	ofObject := hold.Hold{}
	if live != nil && allowsHolds(mr, live) {
		ofObject = hold.Of(live.GetAnnotations(), now)
	}
	return hold.Together(ofObject, hold.Of(mr.Annotations, now))
}
