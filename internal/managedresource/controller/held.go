package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// completeHold records the hold of the ManagedResource itself, and removes the annotations of a hold that has ended,
// or that is refused. It returns nil if the ManagedResource is gone.
func (r *Reconciler) completeHold(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	owner, h := steps.OwnerOf(mr), hold.Of(mr.Annotations, r.Clock.Now())
	switch h.State {
	case hold.None:
		if before := r.holds.End(owner, apply.ManagedResourceItself); !before.Until.IsZero() {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{})
			r.holds.Report(ctx, mr, apply.ReasonHoldReleased, "The objects are left alone no more")
		}
	case hold.InForce:
		if r.holds.Set(owner, apply.ManagedResourceItself, apply.HoldEntry{CheckAt: h.Until, Until: h.Until}) {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{})
			r.holds.Report(ctx, mr, apply.ReasonHoldBegan, "The objects are left alone "+h.String())
		}
	case hold.Over, hold.Refused:
		return r.removeHold(ctx, mr, h)
	}
	return mr, nil
}

func (r *Reconciler) removeHold(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	h hold.Hold) (*resourcesv1alpha1.ManagedResource, error) {
	annotations := map[string]any{}
	for _, name := range hold.Annotations {
		annotations[name] = nil
	}
	next, err := r.Statuses.PatchMetadata(ctx, mr, map[string]any{"annotations": annotations}, true)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("removing a hold that is not in force: %w", err)
	}
	r.holds.End(steps.OwnerOf(mr), apply.ManagedResourceItself)
	r.states.stepKnown(steps.OwnerOf(mr), lifecycle.PeriodEnded{})
	if h.State == hold.Refused {
		r.holds.Report(ctx, mr, apply.ReasonHoldRefused, "The hold was refused and removed: "+h.Refusal.Error())
	} else {
		r.holds.Report(ctx, mr, apply.ReasonHoldEnded, "The hold ended, and the objects are repaired")
	}
	return next, nil
}

// reviewHolds marks all objects of a ManagedResource with a hold for a check, after its annotations changed.
func (t *Triggers) reviewHolds(owner objects.Owner) {
	r := t.reconciler
	for _, key := range r.holds.Of(owner) {
		if key != apply.ManagedResourceItself {
			r.Tracker.Drift(key, r.Clock.Now(), objects.HoldEnded)
		}
	}
}

// endHolds marks the objects whose holds have ended for a check, and returns the time until the next hold ends; zero
// if there is none.
func (t *Triggers) endHolds() time.Duration {
	r := t.reconciler
	due, next := r.holds.Due(r.Clock.Now())
	for _, ended := range due {
		if ended.ID != apply.ManagedResourceItself {
			r.Tracker.Drift(ended.ID, r.Clock.Now(), objects.HoldEnded)
		}
		t.add(ended.Owner, 0)
	}
	return next
}

// namedHolds is the number of objects with a hold that a condition names.
const namedHolds = 10

// leftAlone returns the part of a condition's message about objects with a hold; empty if there are none.
func (r *normalRun) leftAlone() string {
	left := r.reconciler.holds.Of(steps.OwnerOf(r.mr))
	if slices.Contains(left, apply.ManagedResourceItself) {
		return " The ManagedResource is left alone for a while."
	}
	names := namesIn(r.mr, left)
	if len(names) == 0 {
		return ""
	}
	return meta.LeftAlone(plan.JoinNames(names, namedHolds))
}

// namesIn returns the sorted names of objects that the inventory of a ManagedResource has.
func namesIn(mr *resourcesv1alpha1.ManagedResource, ids []objects.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	wanted := sets.New(ids...)
	var names []string
	for i := range mr.Status.Resources {
		if entry := &mr.Status.Resources[i]; wanted.Has(objects.IDOfEntry(entry)) {
			names = append(names, meta.ObjectName(entry.Kind, entry.Namespace, entry.Name))
		}
	}
	slices.Sort(names)
	return names
}
