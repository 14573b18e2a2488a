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

// confirmInventory reads the ManagedResource once more, before the first write on its behalf, if there may be an
// unknown write to it: that write may have removed objects from its inventory which the plan counts as being in it.
func (a *applier) confirmInventory(ctx context.Context) error {
	live, err := a.source.Confirm(ctx, a.mr)
	if err != nil {
		return err
	}
	entries := byKey(live.Status.Resources)
	for i := range a.plan.Inventory {
		if _, found := entries[objects.IDOfEntry(&a.plan.Inventory[i])]; !found {
			return steps.ErrSuperseded // The next run announces it.
		}
	}
	return nil
}

// announce writes, before anything is written to the target, that new content is being worked on, and every object
// that may be there from now on (MR-9, MRB-3): a crash at any later moment leaves nothing unknown behind.
func (r *normalRun) announce(ctx context.Context) error {
	status := &r.mr.Status
	if meta.SameInventory(status.Resources, r.planned.Inventory) && status.SecretsDataChecksum != nil &&
		*status.SecretsDataChecksum == r.content.checksum() {
		return nil
	}
	next, err := r.putOnRecord(ctx)
	switch {
	case err != nil && !errors.Is(err, steps.ErrSuperseded) && !apierrors.IsConflict(err):
		// Nothing of what is wanted is applied. If it was written though the answer says otherwise, that is another
		// task, and not what failed.
		return r.fail(ctx, resourcesv1alpha1.ReasonApplyFailed, unannounced(r.mr, r.planned, err))
	case err != nil:
		return err
	case next == nil:
		return errDone // It is gone.
	}
	r.mr = next
	r.lease.Announced(next)
	return nil
}

func (r *normalRun) putOnRecord(ctx context.Context) (*resourcesv1alpha1.ManagedResource, error) {
	failedBefore := r.taken.Failed == r.content.name(r.mr.Generation)
	return r.source.Update(ctx, r.mr, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		pending := r.planned.Pending(current.Status.Resources)
		return &source.Change{
			Conditions: meta.Conditions(current.Status.Conditions).Invalidation(failedBefore),
			Resources:  &pending,
		}
	})
}

// longInventory is the size from which an inventory is named as the reason if it cannot be written: etcd takes 1.5 MiB
// with a write, and the ManagedResource has more than its inventory.
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

// finish reports success, or the documents that could not be decoded (MR-13), or the old objects that are not gone
// (MRS-8), and the health if it is known already.
func (r *normalRun) finish(ctx context.Context) (lifecycle.Completed, error) {
	mr, owner, inventory := r.mr, steps.OwnerOf(r.mr), r.applier.inventory()
	r.holds.keep(owner, func(key objects.ID) bool { return describes(r.planned, key) })
	applied := r.appliedChange()
	succeeded := applied.Status == resourcesv1alpha1.ConditionTrue
	checksum, newer, isComplete := r.content.checksum(), false, false
	var change *source.Change
	next, err := r.source.Update(ctx, mr, func(*resourcesv1alpha1.ManagedResource) *source.Change {
		if newer = r.applier.newerStateSeen(); newer {
			return nil
		}
		change = &source.Change{
			Conditions: []meta.ConditionChange{applied}, Resources: &inventory,
			Reconciled: &source.Reconciled{Generation: mr.Generation, Checksum: checksum},
		}
		var known []meta.ConditionChange
		if known, isComplete = r.Assessor.KnownHealth(inventory); isComplete && succeeded { // As it is when it is written.
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
		return lifecycle.Completed{}, errDone // It is gone.
	}
	r.track(owner, &plan.Plan{}, inventory)
	completed := lifecycle.Completed{
		Generation: mr.Generation, Secrets: r.content.versions, Checksum: checksum,
		Manifests: r.manifests(),
		Applied:   applied, Inventory: meta.InventoryDigest(inventory),
	}
	r.succeeded(ctx, completed)
	if !isComplete || change.Later > 0 {
		r.Applied(owner)
	}
	r.mr = next
	return completed, nil
}

// manifests returns where the manifests of the objects were, if there are so many objects that the brake on deletions
// needs that.
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
		r.Metrics.failures.WithLabelValues(resourcesv1alpha1.ReasonDecodingFailed).Inc()
		return meta.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDecodingFailed,
			decode.ErrorsMessage(r.content.errors))
	case len(r.pending) > 0:
		return pendingChange(r.pending, r.mr)
	}
	return meta.Applied(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded,
		meta.MessageApplied+r.applier.keptByOthers()+r.leftAlone(r.mr))
}

// keptByOthers returns the part of the condition's message about objects that other ManagedResources keep (MRB-16);
// empty if there are none.
func (a *applier) keptByOthers() string {
	var names []string
	for _, desired := range a.plan.Apply {
		if done := a.written[desired.Ref.ID]; done.isKept() {
			names = append(names, fmt.Sprintf("%s by %s",
				meta.ObjectName(desired.GetKind(), desired.GetNamespace(), desired.GetName()), done.keptBy))
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " Kept by other ManagedResources, which alone write them: " + plan.JoinNames(names, namedHolds) + "."
}

// succeeded records the result of the run, and reports it.
func (r *normalRun) succeeded(ctx context.Context, completed lifecycle.Completed) {
	owner, now := steps.OwnerOf(r.mr), r.Clock.Now()
	commands := r.states.stepPresent(r.mr, lifecycle.RunSucceeded{Completed: completed})
	if command, found := commands.Find(lifecycle.Measure); found && len(r.content.errors) == 0 {
		r.Metrics.changes.Observe(r.Clock.Since(command.Since).Seconds())
	}
	r.Metrics.ignoredObjects.are(owner, r.content.ignored, now)
	if last := r.taken.Last; last == nil || !maps.Equal(last.Secrets, completed.Secrets) ||
		last.Generation != completed.Generation {
		for _, warning := range r.planned.Warnings {
			log.FromContext(ctx).Info("Manifest will cause trouble", "warning", warning)
		}
		r.warn(ctx, r.mr, "DoubtfulManifest", r.planned.Warnings)
	}
	if completed.Applied.Status == resourcesv1alpha1.ConditionTrue {
		r.Metrics.lastSuccess.WithLabelValues(owner.Namespace, owner.Name).Set(float64(now.Unix()))
	}
}

// inventory returns the inventory at the end of the run: planned entries stay planned until their objects are written.
//
// Its branches are the ways in which an object that is created only once may have come about.
func (a *applier) inventory() []resourcesv1alpha1.ObjectReference {
	inventory := slices.Clone(a.plan.Inventory)
	createOnly := map[objects.ID]*plan.Desired{}
	for _, desired := range a.plan.Apply {
		if desired.CreateOnly {
			createOnly[desired.Ref.ID] = desired
		}
	}
	if len(createOnly) == 0 {
		return inventory
	}
	for i := range inventory {
		key := objects.IDOfEntry(&inventory[i])
		desired, found := createOnly[key]
		if !found {
			continue
		}
		done, found := a.written[key]
		if done.result == skipped {
			// An earlier run may have created it without recording that.
			done.observation.UID = a.Tracker.Get(desired.Ref.ID).UID
		}
		switch {
		// The object has a new owner since: if that releases the object, the record would be a false proof.
		case done.anothers:
			inventory[i] = meta.AsTentative(inventory[i])
		case found && (done.result == "created" || a.owners.CreatedFor(steps.OwnerOf(a.mr), desired.Ref.ID) == done.observation.UID &&
			done.observation.UID != ""):
			// Also if an earlier run created it without recording that.
			inventory[i].FieldPath, inventory[i].UID = "", done.observation.UID
		case desired.Old == nil || !steps.CreatedOnce(desired.Old):
			// The object existed before: it stays another owner's, or its origin names the owner.
			inventory[i] = meta.AsTentative(inventory[i])
		}
	}
	return inventory
}

// afterFailure returns the inventory of a run that failed: the objects that the run wrote or found in sync get their
// present entries (MRB-3). An entry that differs from the one that the run announced belongs to another writer, which
// has handled the object since: the next leader, if this process stood still for a while.
func (a *applier) afterFailure(inventory []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	announced, next := byKey(a.mr.Status.Resources), byKey(a.inventory())
	inventory = slices.Clone(inventory)
	for i := range inventory {
		key := objects.IDOfEntry(&inventory[i])
		before, found := announced[key]
		if _, written := a.written[key]; written && found &&
			meta.SameInventory(inventory[i:i+1], []resourcesv1alpha1.ObjectReference{before}) {
			inventory[i] = next[key]
		}
	}
	return inventory
}

// afterSuperseded is afterFailure for a run whose ManagedResource another writer has changed: objects that the run
// created or took over get their entries back, if those are gone. The leader then applies what the manifests say.
func (a *applier) afterSuperseded(inventory []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	inventory = a.afterFailure(inventory)
	present, before := byKey(inventory), len(inventory)
	for key, entry := range byKey(a.inventory()) {
		if _, found := present[key]; !found && a.written[key].gainedOrigin() {
			inventory = append(inventory, entry)
		}
	}
	if len(inventory) > before {
		plan.SortReferences(inventory)
	}
	return inventory
}

func byKey(inventory []resourcesv1alpha1.ObjectReference) map[objects.ID]resourcesv1alpha1.ObjectReference {
	entries := make(map[objects.ID]resourcesv1alpha1.ObjectReference, len(inventory))
	for i := range inventory {
		entries[objects.IDOfEntry(&inventory[i])] = inventory[i]
	}
	return entries
}

// recordPartialInventory records the writes of a run that ends without another report, as its ManagedResource has
// changed.
func (r *Reconciler) recordPartialInventory(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, done *applier) {
	_, err := r.Statuses.Update(ctx, steps.OwnerOf(mr), mr.UID, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		inventory := done.afterSuperseded(current.Status.Resources)
		if !r.Class.Owns(current) || meta.SameInventory(inventory, current.Status.Resources) {
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
