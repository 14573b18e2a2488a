package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/managedresource/plan"
	typed "github.com/espalier-project/espalier/internal/managedresource/schema"
)

// dependency identifies a Namespace, a custom kind, or the list of autoscalers, without which objects are not applied.
type dependency struct {
	namespace   string
	kind        schema.GroupKind
	autoscalers bool
}

// dependencies stores which dependencies a run has checked, and which are missing.
type dependencies struct {
	// scales has the custom kinds of the plan, and whether they have the subresource scale.
	scales map[schema.GroupVersionKind]bool
	// defined are the kinds whose CustomResourceDefinitions the run has applied.
	defined map[schema.GroupKind]bool
	missing map[dependency]*missing
	// autoscalersAsked is true once the run has waited for the list of autoscalers.
	autoscalersAsked bool
}

func newDependencies() dependencies {
	return dependencies{scales: map[schema.GroupVersionKind]bool{}, defined: map[schema.GroupKind]bool{},
		missing: map[dependency]*missing{}}
}

// missing stores why a dependency is missing, and which objects were not applied because of that.
type missing struct {
	reason string
	// cause is the error behind the reason; nil if there is none.
	cause error
	// skipped are the names of the objects that were not applied for this reason.
	skipped []string
}

// skippedError names the objects that a run did not try, and the reason (MRB-4).
type skippedError struct{ *missing }

// Error names at most plan.NamedErrors objects.
func (e skippedError) Error() string {
	slices.Sort(e.skipped)
	objects := "1 object was"
	if len(e.skipped) > 1 {
		objects = fmt.Sprintf("%d objects were", len(e.skipped))
	}
	return fmt.Sprintf("%s not applied, because %s: %s", objects, e.reason, plan.JoinNames(e.skipped, plan.NamedErrors))
}

// Unwrap returns the error of the dependency, so that its refusal counts as a refusal of the objects that need it.
func (e skippedError) Unwrap() error { return e.cause }

// skippedErrors returns an error for each missing dependency of objects of the plan.
func (a *Run) skippedErrors() (errs []error) {
	for _, missing := range a.missing {
		if len(missing.skipped) > 0 {
			errs = append(errs, skippedError{missing})
		}
	}
	slices.SortFunc(errs, func(x, y error) int { return cmp.Compare(x.Error(), y.Error()) })
	return errs
}

// isMissing records that a dependency is missing.
func (a *Run) isMissing(needed dependency, reason string, cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing[needed] = &missing{reason: reason, cause: cause}
}

// skippedFor returns true, and records the object as not tried, if one of its dependencies is missing.
func (a *Run) skippedFor(desired *plan.Desired) bool {
	needs := []dependency{{namespace: desired.GetNamespace()}, {kind: desired.Ref.GroupKind()}}
	if a.isScalable(desired) {
		needs = append(needs, dependency{autoscalers: true})
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, needed := range needs {
		if missing := a.missing[needed]; missing != nil {
			missing.skipped = append(missing.skipped, desired.Name())
			return true
		}
	}
	return false
}

// noteState records whether a Namespace or a CustomResourceDefinition that could not be applied is missing for the
// objects that need it. Only the state of the live object decides: a refused update of one that works does not delay
// other objects (MR-24).
func (a *Run) noteState(ctx context.Context, desired *plan.Desired, cause error) {
	var needed dependency
	var name string
	switch desired.Ref.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		needed, name = dependency{namespace: desired.GetName()}, fmt.Sprintf("Namespace %q", desired.GetName())
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		needed = dependency{kind: definedKind(desired)}
		name = fmt.Sprintf("CustomResourceDefinition %q", desired.GetName())
	default:
		return
	}
	live, err := a.get(ctx, desired)
	switch {
	case apierrors.IsNotFound(err):
		a.isMissing(needed, name+" does not exist", cause)
	case err != nil: // Its state is unknown: the objects are tried, and their errors name the cause.
	case live.GetDeletionTimestamp() != nil:
		a.isMissing(needed, name+" is being deleted", cause)
	case needed.kind != schema.GroupKind{} && !isEstablished(live):
		a.isMissing(needed, name+" is not served yet", cause)
	}
}

// isEstablished reports whether the API server serves the kind of a CustomResourceDefinition.
func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(each any) bool {
		condition, _ := each.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// findScalable finds out which custom kinds of a tier autoscalers may scale, and waits for the list of autoscalers
// before the first tier with an object that they may scale. If that fails, only such objects are skipped (MR-20).
func (a *Run) findScalable(ctx context.Context, tier []*plan.Desired) {
	anyScales := false
	for _, desired := range tier {
		gvk := desired.GroupVersionKind()
		if _, asked := a.scales[gvk]; !asked && typed.IsCustom(gvk.Group) {
			scales, err := a.Target.Scales(ctx, gvk)
			if err != nil {
				a.isMissing(dependency{kind: gvk.GroupKind()}, fmt.Sprintf("it is unknown whether %s has the subresource scale: %s", gvk.Kind, err), err)
			}
			a.scales[gvk] = scales
		}
		anyScales = anyScales || a.isScalable(desired)
	}
	if !anyScales || a.autoscalersAsked {
		return
	}
	a.autoscalersAsked = true
	if err := a.Watches.Autoscalers().Ready(ctx); err != nil {
		a.isMissing(dependency{autoscalers: true}, err.Error(), err)
	}
}

func definedKind(crd *plan.Desired) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}
