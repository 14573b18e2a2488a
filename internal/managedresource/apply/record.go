package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// record records that the object is in sync, or kept by another ManagedResource. isRepair is true if a change by this
// run counts as a repair of drift.
func (a *attempt) record(ctx context.Context, done outcome, isRepair bool) {
	origin, another := a.namesAnother(a.live)
	if done.anothers = another; another && a.desired.CreateOnly {
		a.disown(a.desired.Ref.ID, done.observation.UID, origin)
	}
	a.succeeded(done)
	a.Metrics.Objects.WithLabelValues(a.desired.GetKind(), done.result).Inc()
	observation := done.observation
	observation.ID, observation.Desired, observation.Since = a.desired.Ref.ID, a.digest, a.ticket.Revision
	observation.CreateOnly = a.desired.CreateOnly
	a.Watches.Served(a.desired.Ref)
	if observation.Kept = done.isKept(); observation.Kept {
		a.Holds.End(steps.OwnerOf(a.mr), a.desired.Ref.ID)
	} else {
		observation.Created = a.isCreation(done)
		a.noteHold(ctx, done)
		a.recordRepair(ctx, done, isRepair)
	}
	a.Tracker.MarkInSync(steps.OwnerOf(a.mr), observation)
}

// recordRepair records whether the drift of an object was repaired.
func (a *attempt) recordRepair(ctx context.Context, done outcome, isRepair bool) {
	changed := done.result != "unchanged"
	if isRepair && changed {
		a.repaired(ctx, done)
		return
	}
	switch done.result {
	case "created":
		steps.Wrote(ctx, plan.Created, a.desired.Name())
	case "updated":
		steps.Wrote(ctx, plan.Updated, a.desired.Name())
	}
	// This comes before MarkInSync, which may report a later drift.
	a.Tracker.Drift(a.desired.Ref.ID, a.Clock.Now(), objects.DriftUnfounded)
}

// isCreation reports whether an object was created for the ManagedResource. The process remembers that even if another
// writer removes the record from the inventory.
func (a *attempt) isCreation(done outcome) bool {
	return done.result == "created" ||
		a.desired.CreateOnly && !done.anothers && isRecorded(a.desired, done.observation.UID)
}

// isRecorded reports whether the inventory records that an object was created for the ManagedResource.
func isRecorded(desired *plan.Desired, uid types.UID) bool {
	return desired.Old != nil && steps.CreatedOnce(desired.Old) && !meta.Tentative(desired.Old) && uid != "" &&
		desired.Old.UID == uid
}

func (a *attempt) succeeded(done outcome) {
	a.breaker.Record(a.desired.Ref.GroupKind(), nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	done.observation = objects.Observation{UID: done.observation.UID}
	a.written[a.desired.Ref.ID] = done
	if a.desired.Ref.Kind == "CustomResourceDefinition" && a.desired.Ref.Group == "apiextensions.k8s.io" {
		a.defined[definedKind(a.desired)] = true
	}
}

// namesAnother returns the origin of an object, and whether it names another ManagedResource, of any source. A nil
// object has no origin.
func (a *Run) namesAnother(live *unstructured.Unstructured) (origin ownership.Origin, another bool) {
	if live == nil {
		return ownership.Origin{}, false
	}
	origin = ownership.OriginOf(live, a.Owners.IsOfThisSource)
	return origin, origin.Source == ownership.AnotherSource || origin.Source == ownership.ThisSource &&
		origin.Owner != steps.OwnerOf(a.mr)
}

// disown records that the origin of an object names another ManagedResource than the one that it was created for.
// From now on, neither this process nor an inventory proves that the object belongs to the latter.
func (a *Run) disown(key objects.ID, uid types.UID, origin ownership.Origin) {
	if origin.Source != ownership.ThisSource {
		origin.Owner = objects.Owner{}
	}
	a.Tracker.TakenOver(origin.Owner, key, uid)
}

// inSyncWith reports whether an object is known to be in sync with a desired state.
func inSyncWith(recorded objects.Object, desired uint64) bool {
	return recorded.InSync && recorded.Desired == desired
}

// driftedFrom reports whether another writer has changed an object since it was compared with the same desired state:
// a write is then a repair, and not the roll-out of a new manifest.
func driftedFrom(recorded objects.Object, desired uint64) bool {
	return recorded.OutOfSync && !recorded.RetryPartial && recorded.Desired == desired
}

// isRetried reports whether an object, as it was read, is out of sync only because its write is retried with the same
// desired state: it is the tracked object, and no writer has changed it since.
func isRetried(recorded objects.Object, read objects.Observation, desired uint64) bool {
	return recorded.RetryPartial && recorded.Desired == desired && recorded.UID == read.UID &&
		(recorded.ResourceVersion == read.ResourceVersion || read.Digest != 0 && recorded.Digest == read.Digest)
}
