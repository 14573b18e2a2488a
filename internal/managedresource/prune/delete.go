package prune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// deleteAttempts is the number of decisions that a run makes about an object that another writer keeps changing.
const deleteAttempts = 4

// deleteOne deletes one object, if it is proven to be ours. Its resource version binds the deletion to the object that
// was read.
func (r *run) deleteOne(ctx context.Context, entry *objects.Entry) {
	before := r.Tracker.Get(entry.ID).Revision
	if !r.last && r.isCompleted(entry.ID) {
		r.skip(entry)
		return
	}
	if delayed, err := r.isDelayed(entry.Ref); delayed {
		r.wait(entry, err) // No change is known since the last try.
		return
	}
	kind := entry.GroupKind()
	if r.breaker.IsOpen(kind) {
		r.wait(entry, steps.ErrNotTried)
		return
	}
	gone, err := r.tryDelete(ctx, entry)
	for attempt := 1; !gone && apierrors.IsConflict(err) && attempt < deleteAttempts; attempt++ {
		gone, err = r.tryDelete(ctx, entry)
	}
	r.breaker.Record(kind, err)
	switch {
	case gone:
		r.deletionCompleted(entry.ID, before)
		return
	case err != nil && ctx.Err() == nil && !isTransient(err):
		r.deletionFailed(entry.ID, err)
	}
	r.wait(entry, err)
}

// isTransient reports whether an error proves nothing about the object: the next run may have another result.
func isTransient(err error) bool {
	return apierrors.IsConflict(err) || errors.Is(err, steps.ErrSuperseded) || errors.Is(err, errOwnershipPending)
}

// tryDelete reads an object and deletes it. gone is true if no work remains. Otherwise err is the reason; nil if the
// deletion was accepted and the object may still exist.
//
// It is one list of guards, whose order makes a deletion safe.
func (r *run) tryDelete(ctx context.Context, entry *objects.Entry) (gone bool, err error) {
	if !plan.CanExist(&entry.Reference.ObjectReference) {
		return true, nil
	}
	live, namespace, err := r.Owners.Locations.Find(ctx, entry.Reference)
	if target.Gone(err) || apierrors.IsMethodNotSupported(err) {
		return true, nil // The object does not exist, or its kind cannot be read or deleted (MRX-19).
	}
	if err != nil {
		return false, err
	}
	if err := r.Freshness.Check(ctx, steps.Live); err != nil {
		return false, err
	}
	if err := r.findOthers(); err != nil {
		return false, err
	}
	at, others, err := r.place(ctx, entry, namespace)
	if err != nil || at == nil {
		return at == nil, err
	}
	decision, err := r.decide(at, live, others)
	if err == nil {
		err = r.Freshness.Check(ctx, steps.Live)
	}
	switch {
	case err != nil:
		return false, err
	case decision.Action != ownership.Delete:
		return r.keepInTarget(ctx, entry, at, live, decision)
	}
	if left, err := r.leftToAnotherEntry(ctx, at.ID); left || err != nil {
		return left, err
	}
	ticket, mayDelete := r.Tracker.Begin(objects.ToDelete, r.owner, at.ID)
	if !mayDelete {
		return false, errOwnershipPending
	}
	defer ticket.End()
	return r.delete(ctx, entry, live, ticket)
}

// keepInTarget keeps an object in the target, and hands it over if another ManagedResource is its next
// owner. at is the entry at the object's present place.
func (r *run) keepInTarget(ctx context.Context, entry, at *objects.Entry, live *unstructured.Unstructured,
	decision ownership.Decision) (gone bool, err error) {
	log.FromContext(ctx).Info("Leaving an object in the target cluster", "resource", plan.NameOf(live), "reason",
		decision.Why)
	if decision.Action == ownership.HandOver {
		err = r.handOver(ctx, at.ID, live, decision.To)
	}
	if err != nil {
		return target.Gone(err), err
	}
	if decision.Action == ownership.HandOver {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.handedOver = append(r.handedOver, entry.ID)
	}
	return true, nil
}

// delete deletes an object that was read, with the claims of a StatefulSet (MRX-16). For a terminating object, delete
// only removes the finalizers, if their time is up (MRX-9).
func (r *run) delete(ctx context.Context, entry *objects.Entry,
	live *unstructured.Unstructured, ticket *objects.Ticket) (gone bool, err error) {
	terminating := live.GetDeletionTimestamp() != nil
	if terminating {
		ticket.Record(objects.Terminating)
		r.noteTerminating(entry.ID, live)
	} else {
		r.notTerminating(entry.ID)
	}
	if live.GetKind() == "StatefulSet" && ptr.Deref(r.MR.Spec.DeletePersistentVolumeClaims, false) {
		// The claims are deleted while the StatefulSet exists, because it is needed to find them, regardless of who
		// deleted it.
		err := r.deleteClaims(ctx, live)
		if err == nil {
			err = r.Freshness.Check(ctx, steps.Live)
		}
		switch {
		case errors.Is(err, steps.ErrSuperseded):
			return false, err
		case err != nil:
			return false, fmt.Errorf("failed cleaning up PersistentVolumeClaims of StatefulSet: %w", err)
		}
	}
	if terminating {
		return false, r.finalize(ctx, live)
	}
	ticket.Record(objects.Deleting)
	err = r.Target.Delete(ctx, live, propagation(live.GroupVersionKind().Group))
	if target.Gone(err) || apierrors.IsMethodNotSupported(err) {
		return true, nil
	}
	if err != nil {
		if meta.Refused(err) {
			ticket.Record(objects.Refused)
		}
		return false, err
	}
	r.Tracker.SetPending(r.owner, entry.ID, objects.PendingDeletion{}) // Earlier results no longer apply.
	r.Deleted.WithLabelValues(live.GetKind()).Inc()
	steps.Deleted(ctx, plan.NameOf(live), r.Reason)
	r.mu.Lock()
	r.accepted[entry] = live
	r.mu.Unlock()
	_, err = finalizeAfter(live)
	return false, err
}

// place returns an entry with the present location of its object, and the claims of others on it. It returns nil if
// the plan has the object at that location, so that the entry is obsolete.
func (r *run) place(ctx context.Context, entry *objects.Entry, namespace string) (*objects.Entry, steps.Claims, error) {
	placed := *entry.Reference
	placed.Namespace = namespace
	at := objects.Entry{Ref: objects.RefOf(&placed), Reference: &placed}
	switch {
	case at.ID == entry.ID:
		return entry, r.others, nil
	case slices.ContainsFunc(plan.NewEquivalences(r.MR.Spec.Equivalences).Keys(at.ID),
		func(id objects.ID) bool { return slices.Contains(r.Planned, id) }):
		return nil, steps.Claims{}, nil
	}
	if placed.UID == "" {
		placed = meta.AsTentative(placed) // The record of creation is valid only for the location that the entry names.
	}
	if _, busy := r.Tracker.Claim(r.owner, nil, []objects.Ref{at.Ref}); busy {
		return entry, steps.Claims{}, errOwnershipPending
	}
	others, err := r.Owners.ClaimsOn(ctx, r.owner, []objects.Entry{at})
	return &at, others, err
}

// leftToAnotherEntry reports whether another entry for the same object, by an equivalent kind, hands the object over;
// this entry is then obsolete.
func (r *run) leftToAnotherEntry(ctx context.Context, id objects.ID) (bool, error) {
	if r.DeleteForeign {
		return false, nil
	}
	for _, id := range plan.NewEquivalences(r.MR.Spec.Equivalences).Keys(id)[1:] {
		other := r.byID[id]
		if other == nil {
			continue
		}
		claims, err := r.others.On(id)
		if err != nil {
			return false, err
		}
		if _, inherited := ownership.NextOwner(claims); !inherited {
			continue
		}
		_, err = r.Target.Served(ctx, other.GVK())
		if err == nil || !target.Gone(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// holdsOf returns the finalizers and conditions that block the end of a terminating object.
func holdsOf(live *unstructured.Unstructured) string {
	blocking := healthcheck.BlocksDeletion(live)
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		blocking = slices.Insert(blocking, 0,
			"it waits for the finalizers "+strings.Join(slices.Sorted(slices.Values(finalizers)), ", "))
	}
	return strings.Join(blocking, "; ")
}

// propagation returns Foreground for workloads, so that their Pods are gone with them, and otherwise empty, for the
// API server's default (MRX-8).
func propagation(group string) metav1.DeletionPropagation {
	switch group {
	case "apps", "extensions", "batch":
		return metav1.DeletePropagationForeground
	}
	return ""
}

// finalizeAfter returns the time from the deletion of an object until its finalizers are removed; zero means never
// (MRX-9).
func finalizeAfter(live *unstructured.Unstructured) (time.Duration, error) {
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationFinalizeDeletionAfter]
	if !found {
		return 0, nil
	}
	after, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("failed parsing duration of %s annotation: %w",
			resourcesv1alpha1.AnnotationFinalizeDeletionAfter, err)
	}
	return after, nil
}

// finalize removes the finalizers of an object whose time is up (MRX-9, MRX-10).
func (r *run) finalize(ctx context.Context, live *unstructured.Unstructured) error {
	after, err := finalizeAfter(live)
	if err != nil {
		return err
	}
	since := live.GetDeletionTimestamp()
	if after == 0 || since.Add(after).After(r.Clock.Now()) {
		return nil
	}
	log.FromContext(ctx).Info("Removing the finalizers of an object", "resource", plan.NameOf(live), "gracePeriod", after,
		"deletionTimestamp", since.Time)
	if len(live.GetFinalizers()) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "finalizers": nil}})
		if err != nil {
			return err
		}
		if err := r.Target.Patch(ctx, live, patch); err != nil && !target.Gone(err) {
			return fmt.Errorf("removing its finalizers: %w", err)
		}
		steps.Wrote(ctx, plan.Finalized, plan.NameOf(live))
	}
	if live.GetAPIVersion() == "v1" && live.GetKind() == "Namespace" {
		namespace := live.DeepCopy()
		namespace.SetResourceVersion("")
		namespace.SetFinalizers(nil) // They were removed above, and a terminating object cannot get new ones.
		unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
		if err := r.Target.Put(ctx, namespace, "finalize"); err != nil && !target.Gone(err) {
			return fmt.Errorf("removing the finalizers of the Namespace: %w", err)
		}
		steps.Wrote(ctx, plan.Finalized, plan.NameOf(live))
	}
	return nil
}
