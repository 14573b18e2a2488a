package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/internal/managedresource/merge"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// ReasonDrift is the reason of the Event about objects that another writer changed.
const ReasonDrift = "ObjectChanged"

// LookAgain is the retry interval if an object with a delayed repair could not be read to report its change.
const LookAgain = time.Minute

// delay records that the repair of an object is delayed.
func (a *Run) delay(wait time.Duration) {
	a.Metrics.Delayed.Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.delayed == 0 || wait < a.delayed {
		a.delayed = wait
	}
}

// reportDrift reads an object whose repair is delayed, to report what changed. An object that needs no repair is
// recorded as in sync or kept by another ManagedResource, and nothing is reported.
func (a *attempt) reportDrift(ctx context.Context, wait time.Duration) {
	live, err := a.get(ctx, a.desired)
	if err == nil {
		var done outcome
		var decided bool
		if done, decided, err = a.decide(ctx, live); decided {
			a.record(ctx, done, false)
			return
		}
	}
	if err != nil && !target.Gone(err) {
		log.FromContext(ctx).V(1).Info("Could not determine what another writer changed", "resource", a.desired.Name(),
			"reason", err.Error())
		a.delay(min(wait, LookAgain))
		return
	}
	if a.live != nil {
		a.noteHold(ctx, outcome{result: "unchanged"})
	}
	a.ticket.End() // The reads below are only for the report.
	a.delay(wait)
	drift := a.Tracker.Drift(a.desired.Ref.ID, a.Clock.Now(), objects.DriftReported)
	what := fmt.Sprintf("is repaired in %s", wait.Round(time.Second))
	if drift.Fight {
		what = "is changed repeatedly, and repaired at most twice a minute"
	}
	a.report(ctx, what)
}

// repaired reports an object that was repaired.
func (a *attempt) repaired(ctx context.Context, done outcome) {
	a.Metrics.Drift.WithLabelValues(a.desired.GetKind()).Inc()
	log.FromContext(ctx).Info("Repaired an object that another writer changed", "resource", a.desired.Name(), "result",
		done.result)
	drift := a.Tracker.Drift(a.desired.Ref.ID, a.Clock.Now(), objects.DriftRepaired)
	if drift.Open {
		a.Metrics.Repairs.Observe(drift.Waited.Seconds())
	}
	if drift.Unreported {
		a.report(ctx, "was repaired")
	}
}

// report adds a report about an object: who changed which field, or that the object was deleted.
func (a *attempt) report(ctx context.Context, what string) {
	events := a.desired.Name() + " was deleted"
	if a.live != nil {
		events = a.desired.Name() + " was changed"
		if who := lastWriter(a.live.GetManagedFields(), a.Target.Manager()); who != "" {
			events += fmt.Sprintf(" by %q", who)
		}
		path := merge.Difference(a.live, a.merged)
		if a.desired.GetKind() == "Secret" {
			path, _, _ = strings.Cut(path, ".") // Readers of Events must not learn even the keys of a Secret.
		}
		if path != "" {
			events += " at " + path
		}
	} else if owner := a.missingOwner(ctx); owner != "" {
		what += "; the garbage collector deletes it again, as its manifest has the owner " + owner + ", which does not exist"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, events+"; it "+what)
}

// missingOwner returns the first owner in the manifest of an object if the target has none of its owners: Kubernetes
// then deletes the object each time it is created (MRB-50).
func (a *attempt) missingOwner(ctx context.Context) (missing string) {
	for _, owner := range a.desired.GetOwnerReferences() {
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		live, err := a.Target.Get(ctx, gvk, a.desired.GetNamespace(), owner.Name)
		if target.Gone(err) && a.desired.GetNamespace() != "" { // The owner may be cluster-scoped.
			live, err = a.Target.Get(ctx, gvk, "", owner.Name)
		}
		if err == nil && live.GetUID() == owner.UID || err != nil && !target.Gone(err) {
			return ""
		}
		if missing == "" {
			missing = fmt.Sprintf("%s with UID %q",
				plan.ObjectName(owner.APIVersion, owner.Kind, a.desired.GetNamespace(), owner.Name), owner.UID)
		}
	}
	return missing
}

// lastWriter returns the field manager, other than own, that wrote an object last; it may be empty.
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
