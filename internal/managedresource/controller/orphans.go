package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// collector stands for the ManagedResource that leaves an orphan. No ManagedResource is without a namespace, so that a
// run that applies the object has another owner.
var collector = objects.Owner{Name: "collector of orphans"}

// reasonOrphan is the reason of the Event about an orphan.
const reasonOrphan = "OrphanFound"

// reasonWarning is the reason of Events about warnings of the API server.
const reasonWarning = "APIWarning"

// Orphan judges an object whose origin is a ManagedResource of this source, and which the tracker has no record of.
// The object is an orphan if its ManagedResource is applied completely and no inventory names the object, as after a
// restore of etcd or an answer that was lost. An orphan is counted and reported; it is deleted only if that is
// configured, and if it is proven to be ours.
func (r *Reconciler) Orphan(ctx context.Context, orphan target.Orphan) {
	if err := r.judgeOrphan(ctx, orphan); err != nil {
		log.FromContext(ctx).Info("Could not judge an object that no inventory names", "groupVersionKind",
			orphan.GVK.String(),
			"namespace", orphan.Namespace, "name", orphan.Name, "reason", err.Error())
	}
}

func (r *Reconciler) judgeOrphan(ctx context.Context, orphan target.Orphan) error {
	mr, err := r.ownerOfOrphan(ctx, orphan)
	if err != nil || mr == nil {
		return err
	}
	apiVersion, kind := orphan.GVK.ToAPIVersionAndKind()
	ref := resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: orphan.Namespace, Name: orphan.Name,
	}}
	// An inventory may name it by an equivalent kind.
	names := r.namesOf(mr, ref)
	refs := refsOf(names)
	r.Tracker.Track(collector, refs)
	defer r.Tracker.Track(collector, nil)
	r.Tracker.Claim(collector, nil, refs)
	live, err := r.orphan(ctx, mr, orphan, names)
	if err != nil || live == nil {
		return err
	}
	r.Metrics.orphans.WithLabelValues(kind).Inc()
	// An older object was left on purpose, by an earlier ManagedResource of that name.
	older := live.GetCreationTimestamp().Time.Before(mr.CreationTimestamp.Time)
	if !*r.Config.CollectOrphans || older {
		r.Events.Warn(ctx, mr, reasonOrphan,
			fmt.Sprintf("Object %q names this ManagedResource as its origin, and no manifest has it. It stays.",
				plan.NameOf(live)))
		return nil
	}
	return r.deleteOrphan(ctx, mr, live, names)
}

// ownerOfOrphan returns the ManagedResource that a stray object names; nil if its state proves nothing about objects
// that no inventory has, or may soon change.
func (r *Reconciler) ownerOfOrphan(ctx context.Context,
	orphan target.Orphan) (*resourcesv1alpha1.ManagedResource, error) {
	origin, err := meta.ParseOrigin(orphan.Origin)
	if foreign := err != nil || origin.ClusterID != r.Identity; foreign {
		return nil, nil
	}
	mr, err := r.Statuses.Get(ctx, origin.Key)
	if apierrors.IsNotFound(err) {
		return nil, nil // Objects of a ManagedResource that is gone may have been left on purpose.
	}
	if err != nil || !r.Class.Responsible(mr) || mr.DeletionTimestamp != nil ||
		meta.Ignored(mr) || isTrue(mr.Spec.KeepObjects) {
		return nil, err
	}
	if !r.states.get(mr).AtRest(mr.Generation) {
		return nil, nil // Its next run may be about this object. The next audit checks again.
	}
	return mr, nil
}

// orphan returns a stray object, if no inventory has it and it is proven to be the ManagedResource's; else nil.
//
// It is one list of proofs: without any of them the object stays.
func (r *Reconciler) orphan(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, orphan target.Orphan,
	names []resourcesv1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	entries := objects.EntriesOf(names)
	others, err := r.claimsOn(ctx, collector, entries)
	if err != nil || len(others.byID) > 0 {
		return nil, err // Also of equivalent kinds: an inventory may name it.
	}
	live, err := r.Target.Get(ctx, orphan.GVK, orphan.Namespace, orphan.Name)
	if target.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if live.GetUID() != orphan.UID || live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != r.origin(mr) ||
		!r.Target.WroteOrigin(live) {
		return nil, nil
	}
	if verdict, err := r.judge(mr, &entries[0], live, others); err != nil || verdict.Action != ownership.Delete {
		return nil, err
	}
	if confirmed, err := r.confirmOrphan(ctx, mr, names); err != nil || !confirmed {
		return nil, err
	}
	return live, nil
}

// deleteOrphan deletes an orphan, unless a run is about to apply it.
func (r *Reconciler) deleteOrphan(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	live *unstructured.Unstructured, names []resourcesv1alpha1.ObjectReference) error {
	for _, key := range idsOf(names) {
		ticket, mayDelete := r.Tracker.Begin(objects.ToDelete, collector, key)
		if !mayDelete {
			return nil
		}
		defer ticket.End()
	}
	err := r.Target.Delete(ctx, live, propagation(live.GroupVersionKind().Group))
	if err != nil && !target.Gone(err) {
		return fmt.Errorf("deleting it: %w", err)
	}
	r.Metrics.deleted.WithLabelValues(live.GetKind()).Inc()
	ctx, written := withTrail(ctx)
	deleted(ctx, plan.NameOf(live), orphaned)
	r.tellWrites(ctx, mr, written)
	r.Events.Warn(ctx, mr, reasonOrphan,
		fmt.Sprintf("Object %q names this ManagedResource as its origin, and no manifest has it. It was deleted.",
			plan.NameOf(live)))
	return nil
}

// namesOf returns the entries that an inventory may have for an object: by its kind, and by those that are equivalent
// for its ManagedResource (MRD-13).
func (r *Reconciler) namesOf(mr *resourcesv1alpha1.ManagedResource,
	ref resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	var names []resourcesv1alpha1.ObjectReference
	for _, key := range plan.NewEquivalences(mr.Spec.Equivalences).Keys(objects.IDOfEntry(&ref)) {
		name := ref
		if name.Kind = key.Kind; key.Group != ref.GroupVersionKind().Group {
			name.APIVersion = schema.GroupVersion{Group: key.Group, Version: "v1"}.String() // The version does not matter.
		}
		names = append(names, name)
	}
	return names
}

// confirmOrphan reads the ManagedResource that an orphan names once more: caches may lag behind the changes by another
// process.
func (r *Reconciler) confirmOrphan(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	names []resourcesv1alpha1.ObjectReference) (bool, error) {
	latest, err := r.confirm(ctx, mr)
	if errors.Is(err, errSuperseded) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	inventory := objects.EntriesOf(latest.Status.Resources)
	return !slices.ContainsFunc(objects.EntriesOf(names), func(name objects.Entry) bool {
		return slices.ContainsFunc(inventory, func(entry objects.Entry) bool {
			return entry.Same(name.ID, name.Reference.Namespace == "")
		})
	}), nil
}
