package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// Reasons of Events about holds (MRF-14).
const (
	reasonHoldBegan    = "HoldBegan"
	reasonHoldEnded    = "HoldEnded"
	reasonHoldReleased = "HoldReleased"
	reasonHoldRefused  = "HoldRefused"
)

// held has the holds on an object, as it was read, and on its ManagedResource.
type held struct {
	// own is the hold on the object itself; none if the object must not have a hold.
	own hold.Hold
	// forbidden is true if the object has a hold and must not have one (MRF-15).
	forbidden bool
	effect    hold.Effect
}

// holdOn sets the holds on an object that was read, and their effect on its merge.
func (a *attempt) holdOn(live *unstructured.Unstructured) {
	a.held = held{}
	if !a.desired.CreateOnly { // That is never repaired.
		now := a.Clock.Now()
		a.held.own = hold.Of(live.GetAnnotations(), now)
		if a.held.own.State != hold.None && !a.allowsHolds(a.mr) {
			a.held.own, a.held.forbidden = hold.Hold{}, true
		}
		a.held.effect = hold.Together(a.held.own, hold.Of(a.mr.Annotations, now))
	}
	a.options.Hold = a.held.effect
}

// allowsHolds reports whether the writers of a ManagedResource's objects may set holds on them.
func (r *Reconciler) allowsHolds(mr *resourcesv1alpha1.ManagedResource) bool {
	if allowed, err := strconv.ParseBool(mr.Annotations[resourcesv1alpha1.AnnotationAllowHolds]); err == nil {
		return allowed
	}
	return r.AllowHolds
}

// staysMissing reports whether an object that is gone stays gone, because its ManagedResource has a hold: a user may
// have deleted the object on purpose. An object that no inventory had is created.
func (a *attempt) staysMissing() bool {
	return !a.desired.IsNew() && hold.Of(a.mr.Annotations, a.Clock.Now()).State == hold.InForce
}

// waitForHold schedules a check of a missing object for the end of the hold on its ManagedResource.
func (a *attempt) waitForHold() {
	until := hold.Of(a.mr.Annotations, a.Clock.Now()).Until
	a.holds.are(steps.OwnerOf(a.mr), a.desired.Ref.ID, holdEntry{look: until})
	a.delay(max(until.Sub(a.Clock.Now()), time.Millisecond))
}

// noteHold records and reports the holds on an object, after the object was reconciled.
func (a *attempt) noteHold(ctx context.Context, done outcome) {
	owner, key, h := steps.OwnerOf(a.mr), a.desired.Ref.ID, a.held
	written := done.result == "updated"
	if h.effect.IsInForce() {
		entry := holdEntry{look: h.effect.Until}
		if h.own.State == hold.InForce {
			entry.own = h.own.Until
		}
		if a.holds.are(owner, key, entry) {
			a.tellHold(ctx, a.mr, reasonHoldBegan,
				fmt.Sprintf("%s is left alone %s%s", a.desired.Name(), h.own, setBy(a.live.GetManagedFields())))
		}
		return
	}
	before := a.holds.end(owner, key)
	switch {
	case h.own.State == hold.Over && written:
		a.tellHold(ctx, a.mr, reasonHoldEnded,
			fmt.Sprintf("The hold on %s ended, and it was repaired%s", a.desired.Name(), a.where()))
	case h.own.State == hold.Refused && written:
		a.tellHold(ctx, a.mr, reasonHoldRefused,
			fmt.Sprintf("The hold on %s was refused and removed: %s", a.desired.Name(), h.own.Refusal))
	case h.forbidden && written:
		a.tellHold(ctx, a.mr, reasonHoldRefused,
			fmt.Sprintf("%s was repaired in spite of its annotation %s, which does not count on objects of this ManagedResource",
				a.desired.Name(), resourcesv1alpha1.AnnotationLeaveAloneUntil))
	case !before.own.IsZero():
		a.tellHold(ctx, a.mr, reasonHoldReleased, a.desired.Name()+" is left alone no more")
	}
}

// where returns the place of a repair, without content.
func (a *attempt) where() string {
	without := a.live.DeepCopy()
	for _, name := range hold.Annotations {
		unstructured.RemoveNestedField(without.Object, "metadata", "annotations", name)
	}
	path := merge.Difference(without, a.merged)
	if a.desired.GetKind() == "Secret" {
		path, _, _ = strings.Cut(path, ".")
	}
	if path == "" {
		return ""
	}
	return " at " + path
}

func setBy(fields []metav1.ManagedFieldsEntry) string {
	if manager, _ := hold.SetBy(fields); manager != "" {
		return fmt.Sprintf(", set by %q", manager)
	}
	return ""
}

func (r *Reconciler) tellHold(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason, message string) {
	log.FromContext(ctx).Info("Hold", "event", reason, "message", message)
	if reason == reasonHoldBegan || reason == reasonHoldRefused {
		r.Events.Warn(ctx, mr, reason, message)
		return
	}
	r.Events.Tell(ctx, mr, reason, message)
}

// completeHold records the hold of the ManagedResource itself, and removes the annotations of a hold that has ended,
// or that is refused. It returns nil if the ManagedResource is gone.
func (r *Reconciler) completeHold(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	owner, h := steps.OwnerOf(mr), hold.Of(mr.Annotations, r.Clock.Now())
	switch h.State {
	case hold.None:
		if before := r.holds.end(owner, noObject); !before.own.IsZero() {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{})
			r.tellHold(ctx, mr, reasonHoldReleased, "The objects are left alone no more")
		}
	case hold.InForce:
		if r.holds.are(owner, noObject, holdEntry{look: h.Until, own: h.Until}) {
			r.states.stepKnown(owner, lifecycle.PeriodEnded{})
			r.tellHold(ctx, mr, reasonHoldBegan, "The objects are left alone "+h.String())
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
	r.holds.end(steps.OwnerOf(mr), noObject)
	r.states.stepKnown(steps.OwnerOf(mr), lifecycle.PeriodEnded{})
	if h.State == hold.Refused {
		r.tellHold(ctx, mr, reasonHoldRefused, "The hold was refused and removed: "+h.Refusal.Error())
	} else {
		r.tellHold(ctx, mr, reasonHoldEnded, "The hold ended, and the objects are repaired")
	}
	return next, nil
}

// reviewHolds marks all held objects of a ManagedResource to be checked, after its annotations changed.
func (r *Reconciler) reviewHolds(owner objects.Owner) {
	for _, key := range r.holds.of(owner) {
		if key != noObject {
			r.Tracker.Drift(key, r.Clock.Now(), objects.HoldEnded)
		}
	}
}

// endHolds marks the objects whose holds have ended to be checked, and returns the time until the next hold ends; zero
// if there is none.
func (t *Triggers) endHolds() time.Duration {
	r := t.reconciler
	due, next := r.holds.due(r.Clock.Now())
	for _, ended := range due {
		if ended.key != noObject {
			r.Tracker.Drift(ended.key, r.Clock.Now(), objects.HoldEnded)
		}
		t.add(ended.owner, 0)
	}
	return next
}

// namedHolds is the number of held objects that a condition names.
const namedHolds = 10

// leftAlone returns the part of a condition's message about held objects; empty if there are none.
func (r *Reconciler) leftAlone(mr *resourcesv1alpha1.ManagedResource) string {
	left := r.holds.of(steps.OwnerOf(mr))
	if slices.Contains(left, noObject) {
		return " The ManagedResource is left alone for a while."
	}
	names := namesIn(mr, left)
	if len(names) == 0 {
		return ""
	}
	return meta.LeftAlone(plan.JoinNames(names, namedHolds))
}

// namesIn names objects as the inventory of a ManagedResource has them, sorted.
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
