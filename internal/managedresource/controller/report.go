package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/apply"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/decode"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// announce updates the status before the first write to the target: the conditions report that new content is being
// applied, and the inventory gets every object that may exist from now on (MR-9, MRB-3). A crash at any later moment
// leaves no unknown object behind.
func (r *normalRun) announce(ctx context.Context) error {
	status := &r.mr.Status
	if meta.SameInventory(status.Resources, r.planned.Inventory) && status.SecretsDataChecksum != nil &&
		*status.SecretsDataChecksum == r.content.checksum() {
		return nil
	}
	next, err := r.writeAnnounced(ctx)
	switch {
	case err != nil && !errors.Is(err, steps.ErrSuperseded) && !apierrors.IsConflict(err):
		// Without a complete inventory in the status, nothing is applied.
		return r.fail(ctx, resourcesv1alpha1.ReasonApplyFailed, unannounced(r.mr, r.planned, err))
	case err != nil:
		return err
	case next == nil:
		return errDone // The ManagedResource is gone.
	}
	r.mr = next
	r.freshness.Announced(next)
	return nil
}

func (r *normalRun) writeAnnounced(ctx context.Context) (*resourcesv1alpha1.ManagedResource, error) {
	failedBefore := r.taken.Failed == r.content.name(r.mr.Generation)
	return r.reconciler.source.Update(ctx, r.mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		pending := r.planned.Pending(current.Status.Resources)
		return &source.Change{
			Conditions: meta.Conditions(current.Status.Conditions).Invalidation(failedBefore),
			Resources:  &pending,
		}
	})
}

// longInventory is the size from which the error about an inventory that cannot be written names its size as the
// reason: etcd accepts writes of 1.5 MiB, and the ManagedResource has more than its inventory.
const longInventory = 1 << 20

// unannounced is the error of an announcement that was refused or not answered.
func unannounced(mr *resourcesv1alpha1.ManagedResource, planned *plan.Plan, cause error) error {
	inventory := planned.Pending(mr.Status.Resources)
	text, err := json.Marshal(inventory)
	if err != nil || len(text) < longInventory {
		return fmt.Errorf("writing the inventory before applying: %w", cause)
	}
	return fmt.Errorf("the inventory of %d objects, with their labels and annotations, has %.1f MiB, and may be too long"+
		" for the status; spread the objects over several ManagedResources, or take long annotations away: %w",
		len(inventory), float64(len(text))/(1<<20), cause)
}

// content is the content of the Secrets, as it was read.
type content struct {
	errors   []*decode.Error
	versions map[string]string
	// checksum is computed once, at its first call.
	checksum func() string
	// ignored counts the objects that are ignored.
	ignored int
}

// name identifies the content among the contents of one ManagedResource; it is empty if nothing was read.
func (c content) name(generation int64) string {
	if c.versions == nil {
		return ""
	}
	return fmt.Sprint(generation, c.versions)
}

// finish reports success, the documents that could not be decoded (MR-13), or the old objects that are not gone
// (MRS-8); and the health if it is already known.
func (r *normalRun) finish(ctx context.Context) (lifecycle.Completed, error) {
	mr, owner, inventory := r.mr, steps.OwnerOf(r.mr), r.applied.Inventory()
	r.reconciler.holds.Keep(owner, func(key objects.ID) bool { return describes(r.planned, key) })
	applied := r.appliedChange()
	succeeded := applied.Status == resourcesv1alpha1.ConditionTrue
	checksum, newer, isComplete := r.content.checksum(), false, false
	var change *source.Change
	next, err := r.reconciler.source.Update(ctx, mr, func(*resourcesv1alpha1.ManagedResource) *source.Change {
		if newer = r.applied.NewerStateSeen(); newer {
			return nil
		}
		change = &source.Change{
			Conditions: []meta.ConditionChange{applied}, Resources: &inventory,
			Reconciled: &source.Reconciled{Generation: mr.Generation, Checksum: checksum},
		}
		var known []meta.ConditionChange
		if known, isComplete = r.reconciler.Assessor.KnownHealth(inventory); isComplete && succeeded { // Known at the write.
			change.Judgements = known
		}
		return change
	})
	switch {
	case newer:
		return lifecycle.Completed{}, steps.ErrSuperseded // The next run checks the object.
	case err != nil:
		return lifecycle.Completed{}, err
	case next == nil:
		return lifecycle.Completed{}, errDone // The ManagedResource is gone.
	}
	r.reconciler.track(owner, &plan.Plan{}, inventory)
	completed := lifecycle.Completed{
		Generation: mr.Generation, Secrets: r.content.versions, Checksum: checksum,
		Manifests: r.manifests(),
		Applied:   applied, Inventory: meta.InventoryDigest(inventory), IgnoredSince: r.ignoredSince(),
	}
	r.succeeded(ctx, completed)
	if !isComplete || change.Later > 0 {
		r.reconciler.Applied(owner)
	}
	r.mr = next
	return completed, nil
}

// manifests returns the Secret and key of each manifest; nil if the objects are too few for a mass deletion.
func (r *normalRun) manifests() brake.Manifests {
	if len(r.planned.Apply) <= brake.Few {
		return nil
	}
	if r.taken.HasRead(r.mr.Generation, r.content.versions) {
		return r.taken.Last.Manifests
	}
	manifests := make(brake.Manifests, len(r.planned.Apply))
	for _, desired := range r.planned.Apply {
		manifests[desired.Ref.ID] = brake.Manifest{Secret: desired.Place.Secret.String(), Key: desired.Place.Key}
	}
	return manifests
}

// appliedChange returns the condition that the run ends with.
func (r *normalRun) appliedChange() meta.ConditionChange {
	switch {
	case len(r.content.errors) > 0:
		r.reconciler.Metrics.failures.WithLabelValues(resourcesv1alpha1.ReasonDecodingFailed).Inc()
		return meta.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDecodingFailed,
			decode.ErrorsMessage(r.content.errors))
	case len(r.pending) > 0:
		return pendingChange(r.pending, r.mr)
	}
	return meta.Applied(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded,
		meta.MessageApplied+r.applied.KeptByOthers()+r.leftAlone())
}

// succeeded records the result of the run, and reports it.
func (r *normalRun) succeeded(ctx context.Context, completed lifecycle.Completed) {
	owner, now := steps.OwnerOf(r.mr), r.reconciler.Clock.Now()
	commands := r.reconciler.states.stepPresent(r.mr, lifecycle.RunSucceeded{Completed: completed})
	if command, found := commands.Find(lifecycle.Measure); found && len(r.content.errors) == 0 {
		r.reconciler.Metrics.changes.Observe(r.reconciler.Clock.Since(command.Since).Seconds())
	}
	apply.SetGauge(r.reconciler.Metrics.ignoredObjects, owner, float64(r.content.ignored))
	apply.SetGauge(r.reconciler.Metrics.ignoredSince, owner, float64(completed.IgnoredSince))
	if last := r.taken.Last; last == nil || !maps.Equal(last.Secrets, completed.Secrets) ||
		last.Generation != completed.Generation {
		for _, warning := range r.planned.Warnings {
			log.FromContext(ctx).Info("Manifest will cause trouble", "warning", warning)
		}
		steps.Warn(ctx, r.reconciler.Events, r.mr, "DoubtfulManifest", r.planned.Warnings)
	}
	if completed.Applied.Status == resourcesv1alpha1.ConditionTrue {
		r.reconciler.Metrics.lastSuccess.WithLabelValues(owner.Namespace, owner.Name).Set(float64(now.Unix()))
	}
}

// recordPartialInventory records the writes of a run that ends without another report, because its ManagedResource
// has changed.
func (r *normalRun) recordPartialInventory(ctx context.Context) {
	_, err := r.reconciler.Statuses.Update(ctx, steps.OwnerOf(r.mr), r.mr.UID, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		inventory := r.applied.PartialInventory(current.Status.Resources)
		if !r.reconciler.Class.Owns(current) || meta.SameInventory(inventory, current.Status.Resources) {
			return nil
		}
		return &source.Change{Resources: &inventory}
	})
	if err != nil && !errors.Is(err, source.ErrGone) {
		log.FromContext(ctx).Info("Could not record the objects that a superseded run wrote", "reason", err.Error())
	}
}

// pendingChange returns the condition while objects are being deleted (MRS-8).
func pendingChange(pending []error, mr *resourcesv1alpha1.ManagedResource) meta.ConditionChange {
	return target.WithoutRepeats(meta.Applied(resourcesv1alpha1.ConditionProgressing,
		resourcesv1alpha1.ReasonDeletionPending,
		plan.Combine("Could not clean all old resources", pending)), mr.Status.Conditions)
}

// describes reports whether a plan applies an object.
func describes(planned *plan.Plan, key objects.ID) bool {
	return slices.ContainsFunc(planned.Apply, func(d *plan.Desired) bool { return d.Ref.ID == key })
}
