package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// reasonDrift is the reason of the Event about objects that another writer changed.
const reasonDrift = "ObjectChanged"

// lookAgain is the retry interval if a held object could not be read to report its change.
const lookAgain = time.Minute

// delay records that an object is not repaired before its time.
func (a *applier) delay(wait time.Duration) {
	a.Metrics.objectsHeld.Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == 0 || wait < a.held {
		a.held = wait
	}
}

// lookAtDrift reads an object whose repair is delayed, to report what changed. An object that needs no repair is
// recorded as in sync, and nothing is reported.
func (a *applier) lookAtDrift(ctx context.Context, desired *plan.Desired, options merge.Options, digest uint64,
	wait time.Duration) {
	key := desired.Ref.ID
	ticket, _ := a.Tracker.Begin(objects.ToApply, ownerOf(a.mr), key)
	defer ticket.End()
	options, digest = a.latest(desired, options, digest)
	live, err := a.get(ctx, desired)
	if err != nil && !target.Gone(err) {
		log.FromContext(ctx).V(1).Info("Could not determine what another writer changed", "resource", desired.Name(),
			"reason", err.Error())
		a.delay(min(wait, lookAgain))
		return
	}
	var merged *unstructured.Unstructured
	if live != nil {
		held := a.heldOn(desired, live)
		options.Hold = held.effect
		merged = merge.Merge(desired, live, options)
		if same, again := a.same(ctx, desired, live, merged, ticket.RetryPartial); same {
			a.recordApplied(ctx, desired, ticket, outcome{result: "unchanged", observation: a.seen(live, again),
				before: live, after: merged, held: held}, digest, false)
			return
		}
		a.noteHold(ctx, desired, outcome{result: "unchanged", before: live, after: merged, held: held})
	}
	ticket.End() // The reads below decide about nothing.
	a.delay(wait)
	drift := a.Tracker.RecordDrift(key, objects.DriftReported, a.Clock.Now())
	what := fmt.Sprintf("is repaired in %s", wait.Round(time.Second))
	if drift.Fight {
		what = "is changed repeatedly, and repaired at most twice a minute"
	}
	a.tell(ctx, desired, live, merged, what)
}

// repaired reports an object that was repaired.
func (a *applier) repaired(ctx context.Context, desired *plan.Desired, done outcome) {
	a.Metrics.drift.WithLabelValues(desired.GetKind()).Inc()
	log.FromContext(ctx).Info("Repaired an object that another writer changed", "resource", desired.Name(), "result",
		done.result)
	now := a.Clock.Now()
	if drift := a.Tracker.DriftOf(desired.Ref.ID, now); drift.Open {
		a.Metrics.repairs.Observe(drift.Waited.Seconds())
	}
	if a.Tracker.RecordDrift(desired.Ref.ID, objects.DriftRepaired, now).Untold {
		a.tell(ctx, desired, done.before, done.after, "was repaired")
	}
}

// tell records the report about an object: who changed it, and where. live is nil if the object was deleted.
func (a *applier) tell(ctx context.Context, desired *plan.Desired, live, merged *unstructured.Unstructured,
	what string) {
	events := desired.Name() + " was deleted"
	if live != nil {
		events = desired.Name() + " was changed"
		if who := lastWriter(live.GetManagedFields(), a.Target.Manager()); who != "" {
			events += fmt.Sprintf(" by %q", who)
		}
		path := merge.Difference(live, merged)
		if desired.GetKind() == "Secret" {
			path, _, _ = strings.Cut(path, ".") // Even the keys of a Secret are not for everybody who may read Events.
		}
		if path != "" {
			events += " at " + path
		}
	} else if owner := a.missingOwner(ctx, desired); owner != "" {
		what += "; the garbage collector deletes it again, as its manifest has the owner " + owner + ", which does not exist"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, events+"; it "+what)
}

// missingOwner returns the first owner of a manifest, if the target has none of them: then Kubernetes deletes the
// object each time it is created (MRB-50).
func (a *applier) missingOwner(ctx context.Context, desired *plan.Desired) (missing string) {
	for _, owner := range desired.GetOwnerReferences() {
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		live, err := a.Target.Get(ctx, gvk, desired.GetNamespace(), owner.Name)
		if target.Gone(err) && desired.GetNamespace() != "" { // Or it is cluster-scoped.
			live, err = a.Target.Get(ctx, gvk, "", owner.Name)
		}
		if err == nil && live.GetUID() == owner.UID || err != nil && !target.Gone(err) {
			return ""
		}
		if missing == "" {
			missing = fmt.Sprintf("%s with UID %q",
				plan.ObjectName(owner.APIVersion, owner.Kind, desired.GetNamespace(), owner.Name), owner.UID)
		}
	}
	return missing
}

// warn records one Event about several objects, with the reports about the first few. Without reports there is none.
func (r *Reconciler) warn(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason string, events []string) {
	const named = 3
	if len(events) == 0 {
		return
	}
	events = slices.Sorted(slices.Values(events))
	message := strings.Join(events[:min(len(events), named)], ". ")
	if more := len(events) - named; more > 0 {
		message += fmt.Sprintf(". And %d more objects", more)
	}
	r.Events.Warn(ctx, mr, reason, message)
}

// lastWriter returns the other manager that wrote an object last, by its managed fields.
func lastWriter(fields []metav1.ManagedFieldsEntry, own string) string {
	who, when := "", time.Time{}
	for _, entry := range fields {
		if entry.Manager == own || entry.Subresource == "status" || entry.Time == nil || entry.Time.Time.Before(when) {
			continue
		}
		who, when = entry.Manager, entry.Time.Time
	}
	return who
}
