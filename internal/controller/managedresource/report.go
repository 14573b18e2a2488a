package managedresource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/apply"
	"github.com/espalier-project/espalier/internal/managed"
	"github.com/espalier-project/espalier/internal/manifest"
	"github.com/espalier-project/espalier/internal/source"
	"github.com/espalier-project/espalier/internal/target"
)

// announce writes, before anything is written to the target, that new content is being worked on, and every object that
// may be there from now on (MR-9, MRB-3): a crash at any later moment leaves nothing unknown behind.
func (r *Reconciler) announce(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, plan *apply.Plan, read content, last pass) (*resourcesv1alpha1.ManagedResource, error) {
	tried := read.name(mr.Generation)
	r.passes.update(mr, func(p *pass) { p.tried = tried })
	status := &mr.Status
	sameInventory := len(status.Resources) == 0 && len(plan.Inventory) == 0 || equality.Semantic.DeepEqual(status.Resources, plan.Inventory)
	if sameInventory && status.SecretsDataChecksum != nil && *status.SecretsDataChecksum == read.checksum() {
		return mr, nil
	}
	pending := plan.Pending(status.Resources)
	next, err := r.Statuses.Update(ctx, ownerOf(mr), mr.UID, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		return &source.Change{
			Conditions: managed.Conditions(current.Status.Conditions).Invalidation(last.attempted == tried),
			Resources:  &pending,
		}
	})
	if errors.Is(err, source.ErrGone) {
		return nil, nil
	}
	return next, err
}

// content is what was read from the Secrets.
type content struct {
	errors   []*manifest.Error
	versions map[string]string
	// checksum is computed when it is asked for, once.
	checksum func() string
}

// name stands for the content among those of one ManagedResource.
func (c content) name(generation int64) string {
	return fmt.Sprint(generation, c.versions)
}

// finish reports success, or which documents could not be decoded (MR-13), and the health if it is known by now.
func (r *Reconciler) finish(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, plan *apply.Plan, read content) error {
	owner := ownerOf(mr)
	applied := managed.Applied(resourcesv1alpha1.ConditionTrue, resourcesv1alpha1.ReasonApplySucceeded, managed.MessageApplied)
	if len(read.errors) > 0 {
		applied = managed.Applied(resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonDecodingFailed, manifest.ErrorsMessage(read.errors))
		failures.WithLabelValues(resourcesv1alpha1.ReasonDecodingFailed).Inc()
	}
	refs := make([]resourcesv1alpha1.ObjectReference, len(plan.Inventory))
	copy(refs, plan.Inventory)
	known, settled := r.Assessor.FromLedger(refs)
	changes := []managed.ConditionChange{applied}
	if settled && len(read.errors) == 0 {
		changes = slices.Concat(known, changes)
	}
	_, err := r.Statuses.Update(ctx, owner, mr.UID, func(current *resourcesv1alpha1.ManagedResource) *source.Change {
		return &source.Change{
			Conditions: changes, Resources: &plan.Inventory,
			Reconciled: &source.Reconciled{Generation: mr.Generation, Checksum: read.checksum()},
		}
	})
	if errors.Is(err, source.ErrGone) {
		return nil
	}
	if err != nil {
		r.passes.incomplete(mr)
		return err
	}

	r.track(owner, &apply.Plan{}, plan.Inventory)
	before := r.passes.of(mr)
	r.passes.finished(mr, read.versions, read.checksum())
	if !maps.Equal(before.secrets, read.versions) || before.readGeneration != mr.Generation {
		for _, warning := range plan.Warnings {
			log.FromContext(ctx).Info("Manifest will cause trouble", "warning", warning)
			r.Events.Warn(ctx, mr, "DoubtfulManifest", warning)
		}
	}
	if len(read.errors) == 0 {
		lastSuccess.WithLabelValues(owner.Namespace, owner.Name).Set(float64(r.Clock.Now().Unix()))
	}
	if !settled {
		r.Applied(owner)
	}
	return nil
}

// pendingChange is the condition while objects are being deleted (MRS-8).
func pendingChange(pending []error, mr *resourcesv1alpha1.ManagedResource) managed.ConditionChange {
	return target.WithoutNews(managed.Applied(resourcesv1alpha1.ConditionProgressing, resourcesv1alpha1.ReasonDeletionPending,
		combined("Could not clean all old resources", pending)), mr.Status.Conditions)
}

// combined joins errors in the form of MRX-12, sorted, so that the same ones make the same message (MRB-18).
func combined(prefix string, errs []error) string {
	if len(errs) == 1 {
		return fmt.Sprintf("%s: 1 error occurred: %s", prefix, errs[0])
	}
	return prefix + ": " + apply.JoinErrors(errs).Error()
}
