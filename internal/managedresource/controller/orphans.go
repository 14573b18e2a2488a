package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// collector stands for a ManagedResource that leaves an orphan; it is nobody's name, so that a run that applies the object is another one.
var collector objects.Owner

// reasonOrphan is the reason of the Event about an orphan.
const reasonOrphan = "OrphanFound"

// Stray judges an object whose origin is a ManagedResource of this source, and that nobody has on record. It is an orphan if its
// ManagedResource is applied completely and no inventory names it, as after a restore of etcd or an answer that was lost. An
// orphan is counted and told of; it is deleted only if that is configured, and if it is proven to be ours.
func (r *Reconciler) Stray(ctx context.Context, stray target.Stray) {
	if err := r.judgeStray(ctx, stray); err != nil {
		log.FromContext(ctx).Info("An object that nobody has on record could not be judged", "groupVersionKind", stray.GVK.String(),
			"namespace", stray.Namespace, "name", stray.Name, "reason", err.Error())
	}
}

func (r *Reconciler) judgeStray(ctx context.Context, stray target.Stray) error {
	origin, err := meta.ParseOrigin(stray.Origin)
	if foreign := err != nil || origin.ClusterID != r.Identity; foreign {
		return nil
	}
	mr, err := r.Statuses.Get(ctx, origin.Key)
	if apierrors.IsNotFound(err) {
		return nil // What a deleted ManagedResource has left may have been left on purpose.
	}
	if err != nil {
		return err
	}
	if !r.Class.Responsible(mr) || mr.DeletionTimestamp != nil || meta.Ignored(mr) || isTrue(mr.Spec.KeepObjects) {
		return nil
	}
	if _, atRest := r.passes.atRest(mr); !atRest {
		return nil // Its next run may be about this object. The next audit looks again.
	}
	apiVersion, kind := stray.GVK.ToAPIVersionAndKind()
	ref := resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: stray.Namespace, Name: stray.Name,
	}}
	// An inventory may name it by an equivalent kind.
	names := r.namesOf(mr, ref)
	r.Ledger.Track(collector, refsOf(names))
	defer r.Ledger.Track(collector, nil)
	r.Ledger.BeginRun(collector, nil, keysOf(names))
	others, err := r.claimsOn(ctx, collector, names)
	if err != nil {
		return err
	}
	if len(others.byKey) > 0 {
		return nil
	}
	for _, err := range others.unknown {
		return err // Also of equivalent kinds: an inventory may name it.
	}
	live, err := r.Target.Get(ctx, stray.GVK, stray.Namespace, stray.Name)
	if target.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if live.GetUID() != stray.UID || live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin] != r.origin(mr) || !r.Target.WroteOrigin(live) {
		return nil
	}
	if verdict, err := r.judge(mr, &ref, live, others); err != nil || verdict.Action != ownership.Delete {
		return err
	}
	if confirmed, err := r.confirmStray(ctx, mr, names); err != nil || !confirmed {
		return err
	}
	r.Metrics.orphans.WithLabelValues(kind).Inc()
	name := plan.NameOf(live)
	// What is older was left on purpose, by an earlier ManagedResource of that name.
	older := live.GetCreationTimestamp().Time.Before(mr.CreationTimestamp.Time)
	if !*r.Config.CollectOrphans || older {
		r.Events.Warn(ctx, mr, reasonOrphan, fmt.Sprintf("Object %q names this ManagedResource as its origin, and no manifest has it. It stays.", name))
		return nil
	}
	for _, key := range keysOf(names) {
		if !r.Ledger.BeginDeletion(collector, key) {
			return nil // A run is about to have it.
		}
		defer r.Ledger.EndDeletion(collector, key)
	}
	err = r.Target.Delete(ctx, live, propagation(stray.GVK.Group))
	if err != nil && !target.Gone(err) {
		return fmt.Errorf("deleting it: %w", err)
	}
	r.Metrics.deleted.WithLabelValues(kind).Inc()
	r.Events.Warn(ctx, mr, reasonOrphan, fmt.Sprintf("Object %q names this ManagedResource as its origin, and no manifest has it. It was deleted.", name))
	return nil
}

// namesOf are the entries that an inventory may have for an object: by its kind, and by those that are equivalent for its ManagedResource (MRD-13).
func (r *Reconciler) namesOf(mr *resourcesv1alpha1.ManagedResource, ref resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	var names []resourcesv1alpha1.ObjectReference
	for _, key := range plan.NewEquivalences(mr.Spec.Equivalences).Keys(plan.KeyOfReference(&ref.ObjectReference)) {
		name := ref
		if name.Kind = key.Kind; key.Group != ref.GroupVersionKind().Group {
			name.APIVersion = schema.GroupVersion{Group: key.Group, Version: "v1"}.String() // The version does not matter.
		}
		names = append(names, name)
	}
	return names
}

// confirmStray reads the ManagedResource that an orphan names once more: caches may lag behind with what another process has made of it.
func (r *Reconciler) confirmStray(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, names []resourcesv1alpha1.ObjectReference) (bool, error) {
	latest, err := r.confirm(ctx, mr)
	if errors.Is(err, errMoved) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i := range names {
		key := plan.KeyOfReference(&names[i].ObjectReference)
		if slices.ContainsFunc(latest.Status.Resources, func(entry resourcesv1alpha1.ObjectReference) bool {
			return plan.KeyOfReference(&entry.ObjectReference).Same(key, names[i].Namespace == "")
		}) {
			return false, nil
		}
	}
	return true, nil
}
