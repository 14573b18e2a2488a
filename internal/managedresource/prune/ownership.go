package prune

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// errOwnershipPending is the error of an object for which another run has a request in flight, whose result decides
// which ManagedResource owns the object.
var errOwnershipPending = errors.New("another ManagedResource also manages this object and is releasing it; retrying")

// decide decides whether an object that leaves the ManagedResource is deleted, kept or handed over.
func (r *run) decide(entry *objects.Entry, live *unstructured.Unstructured,
	others steps.Claims) (ownership.Decision, error) {
	claims, err := others.On(entry.ID)
	if err != nil {
		return ownership.Decision{}, err
	}
	origin := ownership.OriginOf(live, r.Owners.IsOfThisSource)
	// An object without an origin may be one that is created only once: the entry is then the record of its creation.
	created := r.Owners.CreatedFor(r.owner, entry.ID) == live.GetUID() ||
		origin.Source == ownership.NoOrigin && ownership.IsRecord(entry.Reference, live)
	return ownership.Decide(ownership.Left{
		By: r.owner, Claims: claims, Origin: origin, Created: created,
		KeepObject:    meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject),
		Collected:     r.GarbageCollector && ownership.IsCollectable(live.GetAPIVersion(), live.GetKind(), live.GetLabels()),
		DeleteForeign: r.DeleteForeign,
	}), nil
}

// handOver sets another ManagedResource as the origin of the object that was read, if that ManagedResource still
// keeps it. The new owner then reconciles the object, because its manifest may differ.
func (r *run) handOver(ctx context.Context, id objects.ID, live *unstructured.Unstructured,
	to ownership.Claim) error {
	next := to.Owner
	ticket, mayHandOver := r.Tracker.Begin(objects.ToHandOver, next, to.ID)
	if !mayHandOver {
		return errOwnershipPending
	}
	defer ticket.End()
	latest, err := r.Owners.Statuses.Get(ctx, next)
	if err == nil && !r.Owners.Statuses.Confirmed(latest) {
		latest, err = r.Owners.Statuses.GetUncached(ctx, next)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && r.Owners.Entry(latest, to.ID, false) == nil:
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

func (r *run) patchOrigin(ctx context.Context, live *unstructured.Unstructured, next objects.Owner) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
		"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: r.Owners.Origin(next)},
	}})
	if err != nil {
		return err
	}
	return r.Target.Patch(ctx, live, patch)
}
