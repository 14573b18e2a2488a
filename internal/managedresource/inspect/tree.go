package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Level is the urgency of a state.
type Level string

// Levels, the most urgent first.
const (
	Problem  Level = "problem"
	Underway Level = "underway"
	Fine     Level = "fine"
)

// urgency returns the index of a level, 0 for the most urgent one.
func (l Level) urgency() int { return slices.Index([]Level{Problem, Underway, Fine}, l) }

// Branch is a ManagedResource with its objects.
type Branch struct {
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Class     string      `json:"class"`
	Level     Level       `json:"level"`
	State     string      `json:"state"`
	Created   metav1.Time `json:"created"`
	// Ignored are the exemptions from repair that apply to all objects.
	Ignored []Ignored `json:"ignored,omitempty"`
	Leaves  []Leaf    `json:"objects,omitempty"`
}

// Leaf is an object in the inventory of a ManagedResource.
type Leaf struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Namespace  string       `json:"namespace,omitempty"`
	Name       string       `json:"name"`
	Level      Level        `json:"level"`
	State      string       `json:"state"`
	Created    *metav1.Time `json:"created,omitempty"`
	// Drift is the last change by another writer that an Event reports.
	Drift   *Occurrence `json:"drift,omitempty"`
	Ignored []Ignored   `json:"ignored,omitempty"`
}

// TreeFacts is the input of a tree.
type TreeFacts struct {
	Now              time.Time
	ManagedResources []*resourcesv1alpha1.ManagedResource
	// Live are the existing objects of the inventories; Unread has the errors of objects that could not be read.
	Live   map[objects.ID]*unstructured.Unstructured
	Unread map[objects.ID]error
	// Events are the Events of resource-manager.
	Events []corev1.Event
}

// Branches returns the ManagedResources by class, problems first.
func (f *TreeFacts) Branches() []Branch {
	branches := make([]Branch, 0, len(f.ManagedResources))
	for _, mr := range f.ManagedResources {
		branches = append(branches, f.branch(mr))
	}
	slices.SortStableFunc(branches, func(a, b Branch) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Level.urgency(), b.Level.urgency()),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return branches
}

func (f *TreeFacts) branch(mr *resourcesv1alpha1.ManagedResource) Branch {
	b := Branch{Namespace: mr.Namespace, Name: mr.Name, Class: ClassOf(mr), Created: mr.CreationTimestamp,
		Ignored: ignoredOn(mr, onManagedResource, f.Now)}
	b.Level, b.State = stateOf(mr)
	rest := repairsOf(f.Events, keyOf(mr))
	for i := range mr.Status.Resources {
		leaf := f.leaf(mr, &mr.Status.Resources[i], rest)
		if len(b.Ignored) == 0 && leaf.Level.urgency() < b.Level.urgency() {
			b.Level = leaf.Level
		}
		b.Leaves = append(b.Leaves, leaf)
	}
	slices.SortStableFunc(b.Leaves, func(a, b Leaf) int {
		return cmp.Or(cmp.Compare(a.Level.urgency(), b.Level.urgency()), plan.Compare(a.Kind, a.Name, b.Kind, b.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return b
}

// stateOf returns the most urgent state in the conditions of a ManagedResource.
func stateOf(mr *resourcesv1alpha1.ManagedResource) (Level, string) {
	if mr.DeletionTimestamp != nil {
		return Underway, "being deleted" +
			because(meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied))
	}
	conditions := meta.Conditions(mr.Status.Conditions)
	applied := conditions.Get(resourcesv1alpha1.ResourcesApplied)
	healthy := conditions.Get(resourcesv1alpha1.ResourcesHealthy)
	progressing := conditions.Get(resourcesv1alpha1.ResourcesProgressing)
	switch {
	case meta.Ignored(mr):
		return Fine, "ignored"
	case applied == nil:
		return Underway, "not seen by any resource-manager yet"
	case applied.Status == resourcesv1alpha1.ConditionFalse:
		return Problem, "not applied" + because(applied)
	case healthy != nil && healthy.Status == resourcesv1alpha1.ConditionFalse:
		return Problem, "unhealthy" + because(healthy)
	case applied.Status != resourcesv1alpha1.ConditionTrue || mr.Status.ObservedGeneration != mr.Generation:
		return Underway, "being applied"
	case progressing != nil && progressing.Status == resourcesv1alpha1.ConditionTrue:
		return Underway, "progressing" + because(progressing)
	case healthy == nil || healthy.Status != resourcesv1alpha1.ConditionTrue:
		return Underway, "applied, not checked yet"
	}
	return Fine, "applied, healthy"
}

func because(condition *resourcesv1alpha1.Condition) string {
	if condition == nil {
		return ""
	}
	return fmt.Sprintf(" (%s): %s", condition.Reason, condition.Message)
}

func (f *TreeFacts) leaf(mr *resourcesv1alpha1.ManagedResource, ref *resourcesv1alpha1.ObjectReference,
	rest map[string][]Occurrence) Leaf {
	key := objects.IDOfEntry(ref)
	leaf := Leaf{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	for name, occurrences := range rest {
		if namesObject(name, key) && (leaf.Drift == nil || leaf.Drift.Time.Before(&occurrences[0].Time)) {
			leaf.Drift = &occurrences[0]
		}
	}
	live := f.Live[key]
	switch {
	case f.Unread[key] != nil:
		leaf.Level, leaf.State = Underway, "unknown: "+f.Unread[key].Error()
	case live == nil && meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore):
		leaf.Level, leaf.State = Fine, "missing; it is created once"
	case live == nil && isHeld(&Facts{ManagedResource: mr, Now: f.Now}):
		leaf.Level, leaf.State = Underway, "missing; it is not created while its ManagedResource is left alone"
	case live == nil:
		leaf.Level, leaf.State = Problem, "missing"
	default:
		created := live.GetCreationTimestamp()
		leaf.Created = &created
		leaf.Ignored = ignoredOn(live, onLiveObject, f.Now)
		leaf.Level, leaf.State = healthLevel(live)
		for _, held := range heldOn(live, onLiveObject, f.Now) {
			switch {
			case allowsHolds(mr, live):
				leaf.State += "; left alone: " + held.What + byWhom(held)
			case holdUndecided(mr, live, f.Now):
				leaf.State += "; left alone, if the configuration allows it: " + held.What + byWhom(held)
			}
		}
	}
	return leaf
}

// healthLevel returns the progress of the deletion of an object, or else its health.
func healthLevel(live *unstructured.Unstructured) (Level, string) {
	since := live.GetDeletionTimestamp()
	if since != nil {
		state := "being deleted"
		if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
			state += ", held by " + strings.Join(finalizers, ", ")
		}
		return Underway, state
	}
	return assessed(live)
}

// assessed returns the result of the health checks on an object.
func assessed(live *unstructured.Unstructured) (Level, string) {
	status := healthcheck.Options{}.Assess(live)
	switch {
	case status.Unhealthy != "":
		return Problem, "unhealthy: " + status.Unhealthy
	case status.Progressing != "":
		return Underway, "progressing: " + status.Progressing
	case !(healthcheck.Options{}).NeedsWholeObject(live.GroupVersionKind()):
		return Fine, "there"
	}
	return Fine, "healthy"
}

// NeedsWhole reports whether the health checks need more than the metadata of objects of a kind.
func NeedsWhole(ref *resourcesv1alpha1.ObjectReference) bool {
	return healthcheck.Options{}.NeedsWholeObject(ref.GroupVersionKind())
}
