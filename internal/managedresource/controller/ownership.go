package controller

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// errOwnershipPending is the error of an object about which another run is sending a request: it is decided in a moment
// which ManagedResource has the object.
var errOwnershipPending = errors.New("another ManagedResource also manages this object and is releasing it; retrying")

// judge returns the verdict about an object that a ManagedResource leaves.
func (r *Reconciler) judge(mr *resourcesv1alpha1.ManagedResource, entry *objects.Entry,
	live *unstructured.Unstructured, others steps.Claims) (ownership.Verdict, error) {
	claims, err := others.On(entry.ID)
	if err != nil {
		return ownership.Verdict{}, err
	}
	origin := ownership.OriginOf(live, r.owners.IsOfThisSource)
	return ownership.Decide(ownership.Left{
		By: steps.OwnerOf(mr), Claims: claims, Origin: origin,
		Created:       r.isCreation(mr, entry, live, origin.Source != ownership.NoOrigin),
		KeepObject:    meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject),
		Collected:     r.GarbageCollector && ownership.IsCollectable(live.GetAPIVersion(), live.GetKind(), live.GetLabels()),
		DeleteForeign: *r.Config.DeleteForeignObjects,
	}), nil
}

// isCreation reports whether an object whose origin names no owner was created for a ManagedResource that has this
// entry. Either this process created it, or the object carries no origin because it is created only once, and the
// entry is the record: by its UID or, if it has none, by its namespace.
func (r *Reconciler) isCreation(mr *resourcesv1alpha1.ManagedResource, entry *objects.Entry,
	live *unstructured.Unstructured, marked bool) bool {
	ref := entry.Reference
	return r.owners.CreatedFor(steps.OwnerOf(mr), entry.ID) == live.GetUID() ||
		!marked && ownership.IsRecord(ref, live)
}

// handOver makes another ManagedResource the origin of an object, bound to the object that was judged, if that
// ManagedResource still keeps it. The new owner reconciles the object from then on: its manifest may differ.
func (r *Reconciler) handOver(ctx context.Context, id objects.ID, live *unstructured.Unstructured,
	to ownership.Claim) error {
	next := to.Owner
	ticket, mayHandOver := r.Tracker.Begin(objects.ToHandOver, next, to.ID)
	if !mayHandOver {
		return errOwnershipPending
	}
	defer ticket.End()
	latest, err := r.Statuses.Get(ctx, next)
	if err == nil && !r.Statuses.Confirmed(latest) {
		latest, err = r.Statuses.GetUncached(ctx, next)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && r.owners.Entry(latest, to.ID, false) == nil:
		return errOwnershipPending
	case err != nil:
		return err
	}
	if err := r.patchOrigin(ctx, live, next); err != nil {
		return err
	}
	steps.Wrote(ctx, plan.HandedOver, plan.NameOf(live))
	r.Tracker.TakenOver(next, id, live.GetUID())
	r.Tracker.MarkOutOfSync(id)
	return nil
}

func (r *Reconciler) patchOrigin(ctx context.Context, live *unstructured.Unstructured, next objects.Owner) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
		"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: meta.Origin{ClusterID: r.Identity,
			Key: next}.String()},
	}})
	if err != nil {
		return err
	}
	return r.Target.Patch(ctx, live, patch)
}

// mayReplace reports whether an object may be deleted so that it can be created anew: its origin names a
// ManagedResource of this source; or it has no valid origin, and this process created it, or the inventory says that
// it was created for this ManagedResource.
func (a *attempt) mayReplace() bool {
	if origin, err := meta.ParseOrigin(a.live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]); err == nil {
		return a.owners.IsOfThisSource(origin)
	}
	uid := a.live.GetUID()
	return isRecorded(a.desired, uid) || uid != "" && a.Tracker.Get(a.desired.Ref.ID).Created == uid
}

// ownerOfOrigin returns the other ManagedResource that keeps an object with an origin though this one has it, too; zero if
// this one may write the object (MRB-16). An object that is new in the inventory is taken over, once.
func (a *attempt) ownerOfOrigin(ctx context.Context, origin ownership.Origin) (owner objects.Owner, err error) {
	takesOver := a.desired.IsNew() && !a.desired.CreateOnly
	if takesOver || origin.Source != ownership.ThisSource || origin.Owner == steps.OwnerOf(a.mr) {
		return owner, nil
	}
	latest, err := a.Statuses.Get(ctx, origin.Owner)
	if err != nil {
		return owner, client.IgnoreNotFound(err)
	}
	entry := a.owners.Entry(latest, a.desired.Ref.ID, a.desired.GetNamespace() == "")
	if entry != nil && !steps.CreatedOnce(entry) {
		owner = origin.Owner
	}
	return owner, nil
}

// ownerOfMissing is ownerOfOrigin for an object that is missing, and that a ManagedResource verified last.
func (a *attempt) ownerOfMissing(ctx context.Context, verified objects.Owner) (objects.Owner, error) {
	owner, err := a.ownerOfOrigin(ctx, ownership.Origin{Source: ownership.ThisSource, Owner: verified})
	if err == nil && owner != (objects.Owner{}) {
		_, err = a.Target.Served(ctx, a.desired.GroupVersionKind())
	}
	return owner, err
}

// noteTakeover reports an object that carries the origin of another ManagedResource and is about to be written.
func (a *attempt) noteTakeover(ctx context.Context) {
	origin := a.live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if named, err := meta.ParseOrigin(origin); err == nil && named.Key != steps.OwnerOf(a.mr) && !a.desired.CreateOnly {
		a.Metrics.takeovers.Inc()
		log.FromContext(ctx).Info("Taking over an object of another ManagedResource", "resource", a.desired.Name(), "origin",
			origin)
	}
}
