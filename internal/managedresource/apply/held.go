package apply

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/hold"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
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
	if !a.desired.CreateOnly { // An object that is created only once is never repaired.
		now := a.Clock.Now()
		a.held.own = hold.Of(live.GetAnnotations(), now)
		if a.held.own.State != hold.None && !a.allowsHolds() {
			a.held.own, a.held.forbidden = hold.Hold{}, true
		}
		a.held.effect = hold.Together(a.held.own, hold.Of(a.mr.Annotations, now))
	}
	a.options.Hold = a.held.effect
}

// allowsHolds reports whether the writers of a ManagedResource's objects may set holds on them.
func (a *Run) allowsHolds() bool {
	if allowed, err := strconv.ParseBool(a.mr.Annotations[resourcesv1alpha1.AnnotationAllowHolds]); err == nil {
		return allowed
	}
	return a.AllowHolds
}

// waitForHold schedules a check of a missing object for the end of the hold on its ManagedResource.
func (a *attempt) waitForHold() {
	until := hold.Of(a.mr.Annotations, a.Clock.Now()).Until
	a.Holds.Set(steps.OwnerOf(a.mr), a.desired.Ref.ID, HoldEntry{CheckAt: until})
	a.delay(max(until.Sub(a.Clock.Now()), time.Millisecond))
}

// noteHold records and reports the holds on an object, after the object was reconciled.
func (a *attempt) noteHold(ctx context.Context, done outcome) {
	owner, key, h := steps.OwnerOf(a.mr), a.desired.Ref.ID, a.held
	written := done.result == "updated"
	if h.effect.IsInForce() {
		entry := HoldEntry{CheckAt: h.effect.Until}
		if h.own.State == hold.InForce {
			entry.Until = h.own.Until
		}
		if a.Holds.Set(owner, key, entry) {
			a.Holds.Report(ctx, a.mr, ReasonHoldBegan,
				fmt.Sprintf("%s is left alone %s%s", a.desired.Name(), h.own, setBy(a.live.GetManagedFields())))
		}
		return
	}
	before := a.Holds.End(owner, key)
	switch {
	case h.own.State == hold.Over && written:
		a.Holds.Report(ctx, a.mr, ReasonHoldEnded,
			fmt.Sprintf("The hold on %s ended, and it was repaired%s", a.desired.Name(), where(a.live, a.merged)))
	case h.own.State == hold.Refused && written:
		a.Holds.Report(ctx, a.mr, ReasonHoldRefused,
			fmt.Sprintf("The hold on %s was refused and removed: %s", a.desired.Name(), h.own.Refusal))
	case h.forbidden && written:
		a.Holds.Report(ctx, a.mr, ReasonHoldRefused,
			fmt.Sprintf("%s was repaired in spite of its annotation %s, which does not count on objects of this ManagedResource",
				a.desired.Name(), resourcesv1alpha1.AnnotationLeaveAloneUntil))
	case !before.Until.IsZero():
		a.Holds.Report(ctx, a.mr, ReasonHoldReleased, a.desired.Name()+" is left alone no more")
	}
}

// where returns the path of a repaired field, without its value.
func where(live, merged *unstructured.Unstructured) string {
	without := live.DeepCopy()
	for _, name := range hold.Annotations {
		unstructured.RemoveNestedField(without.Object, "metadata", "annotations", name)
	}
	path := merge.Difference(without, merged)
	if live.GetKind() == "Secret" {
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
