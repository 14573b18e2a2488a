package controller

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/ownership"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// errOwnershipPending is the error of an object that another ManagedResource is about to release: it is decided in a
// moment which of the two deletes the object, or whether a third one gets it.
var errOwnershipPending = errors.New("another ManagedResource also manages this object and is releasing it; retrying")

// judge returns the verdict about an object that a ManagedResource leaves.
func (r *Reconciler) judge(mr *resourcesv1alpha1.ManagedResource, entry *objects.Entry,
	live *unstructured.Unstructured, others claims) (ownership.Verdict, error) {
	claims, err := others.on(entry.ID)
	if err != nil {
		return ownership.Verdict{}, err
	}
	origin := ownership.OriginOf(live, r.isOfThisSource)
	verdict := ownership.Decide(ownership.Left{
		By: ownerOf(mr), Claims: claims, Origin: origin,
		Created:       r.isCreation(mr, entry, live, origin.Source != ownership.NoOrigin),
		KeepObject:    meta.Truthy(live.GetAnnotations(), resourcesv1alpha1.AnnotationKeepObject),
		Collected:     r.GarbageCollector && ownership.IsCollectable(live.GetAPIVersion(), live.GetKind(), live.GetLabels()),
		DeleteForeign: *r.Config.DeleteForeignObjects,
	})
	if verdict.Action == ownership.Wait {
		return verdict, errOwnershipPending
	}
	return verdict, nil
}

// isCreation reports whether an object whose origin names no owner was created for a ManagedResource that has this
// entry. Either this process created it, or the object carries no origin because it is created only once, and the
// entry is the record: by its UID or, if it has none, by its namespace.
func (r *Reconciler) isCreation(mr *resourcesv1alpha1.ManagedResource, entry *objects.Entry,
	live *unstructured.Unstructured, marked bool) bool {
	ref := entry.Reference
	return r.createdFor(ownerOf(mr), entry.ID) == live.GetUID() ||
		!marked && ownership.IsRecord(ref, live)
}

// isOfThisSource reports whether an origin is about a ManagedResource of this source. An origin without an identity is
// from before the source had one.
func (r *Reconciler) isOfThisSource(origin meta.Origin) bool {
	return origin.ClusterID == r.Identity || origin.ClusterID == "" || r.Identity == ""
}

// isOrigin reports whether an origin names a ManagedResource.
func (r *Reconciler) isOrigin(mr *resourcesv1alpha1.ManagedResource, value string) bool {
	origin, err := meta.ParseOrigin(value)
	return err == nil && origin.Key == ownerOf(mr) && r.isKnownSource(origin)
}

// isKnownSource reports whether an origin is about this source as it is named now, or from before it had a name.
func (r *Reconciler) isKnownSource(origin meta.Origin) bool {
	return origin.ClusterID == r.Identity || origin.ClusterID == ""
}

// handOver makes another ManagedResource the origin of an object, bound to the object that was judged, if that
// ManagedResource still keeps it. The new owner reconciles the object from then on: its manifest may differ.
func (r *Reconciler) handOver(ctx context.Context, owner objects.Owner, id objects.ID,
	live *unstructured.Unstructured, to ownership.Claim) error {
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
	case apierrors.IsNotFound(err), err == nil && r.entry(latest, to.ID, false) == nil:
		return errOwnershipPending
	case err != nil:
		return err
	}
	if err := r.patchOrigin(ctx, live, next); err != nil {
		return err
	}
	wrote(ctx, plan.HandedOver, plan.NameOf(live))
	r.Tracker.TakenOver(next, id, live.GetUID())
	r.Tracker.Transfer(owner, next, objects.Observation{ID: id})
	r.Tracker.MarkOutOfSync(id)
	return nil
}

// entry returns the entry of an object in the inventory of a ManagedResource that keeps it; nil if there is none.
func (r *Reconciler) entry(mr *resourcesv1alpha1.ManagedResource, id objects.ID,
	clusterScoped bool) *resourcesv1alpha1.ObjectReference {
	for _, own := range objects.EntriesOf(mr.Status.Resources) {
		if own.Same(id, clusterScoped) && r.keepsObject(mr, own.ID) {
			return own.Reference
		}
	}
	return nil
}

// leave leaves an object, as it was seen, to the ManagedResource that keeps it, unless that ManagedResource has
// released the object meanwhile.
func (a *applier) leave(ctx context.Context, next objects.Owner, desired *plan.Desired, seen objects.Observation) {
	owner := ownerOf(a.mr)
	if desired.CreateOnly && a.Tracker.PassOutOfSync(owner, next, seen.ID) {
		return // The other ManagedResource would not repair it.
	}
	a.Tracker.Transfer(owner, next, seen)
	if latest, err := a.Statuses.Get(ctx, next); err == nil {
		entry := a.entry(latest, desired.Ref.ID, desired.GetNamespace() == "")
		if entry != nil && !createdOnce(entry) {
			return
		}
	}
	a.Tracker.Transfer(next, owner, objects.Observation{ID: seen.ID})
	a.Tracker.MarkOutOfSync(seen.ID)
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
func (a *applier) mayReplace(desired *plan.Desired, live *unstructured.Unstructured) bool {
	if origin, err := meta.ParseOrigin(live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]); err == nil {
		return a.isOfThisSource(origin)
	}
	return isRecorded(desired, live.GetUID()) || live.GetUID() != "" &&
		a.Tracker.Get(desired.Ref.ID).Created == live.GetUID()
}

// createdOnce reports whether the entry is about an object with the ignore annotation (MR-30).
func createdOnce(ref *resourcesv1alpha1.ObjectReference) bool {
	return meta.Truthy(ref.Annotations, resourcesv1alpha1.AnnotationIgnore)
}

// ownerOfOrigin returns the other ManagedResource that keeps an object though this one has it, too: the one whose
// inventory got the object last, which the origin names. The object is written as this manifest says, but its origin
// stays. Without this rule a restart would give the object back to its former owner, which deletes it once its
// manifest no longer has it. An object that this ManagedResource creates only once is kept by any other
// ManagedResource that has it.
func (a *applier) ownerOfOrigin(ctx context.Context, desired *plan.Desired,
	live *unstructured.Unstructured) (objects.Owner, string, error) {
	next, value, err := a.nextOwnerOf(ctx, desired, live)
	if origin := live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]; err == nil && !desired.CreateOnly &&
		value == "" {
		if named, err := meta.ParseOrigin(origin); err == nil && named.Key != ownerOf(a.mr) {
			a.Metrics.takeovers.Inc()
			log.FromContext(ctx).Info("Taking over an object of another ManagedResource", "resource", desired.Name(), "origin",
				origin)
		}
	}
	return next, value, err
}

// nextOwnerOf is ownerOfOrigin without the report of a takeover.
func (a *applier) nextOwnerOf(ctx context.Context, desired *plan.Desired,
	live *unstructured.Unstructured) (objects.Owner, string, error) {
	if desired.CreateOnly {
		owner, err := a.ownerOfShared(ctx, desired, live)
		return owner, "", err
	}
	origin := ownership.OriginOf(live, a.isKnownSource)
	recorded := desired.Old != nil && !meta.Tentative(desired.Old)
	if !recorded || origin.Source != ownership.ThisSource || origin.Owner == ownerOf(a.mr) {
		return objects.Owner{}, "", nil // The object is our own: claims of others are not read.
	}
	owner, err := a.otherOwner(ctx, desired, origin, ownership.AsRecorded)
	if owner == (objects.Owner{}) {
		return owner, "", err
	}
	return owner, origin.Text, nil
}

// ownerOfShared returns another ManagedResource that repairs an object which this one creates only once.
func (a *applier) ownerOfShared(ctx context.Context, desired *plan.Desired,
	live *unstructured.Unstructured) (objects.Owner, error) {
	origin := ownership.OriginOf(live, a.isKnownSource)
	anothers := origin.Source == ownership.ThisSource && origin.Owner != ownerOf(a.mr)
	if !anothers && !a.Tracker.Get(desired.Ref.ID).Shared {
		return objects.Owner{}, nil // After a start not all claims are on record yet; then the origin decides.
	}
	return a.otherOwner(ctx, desired, origin, ownership.CreateOnly)
}

func (a *applier) otherOwner(ctx context.Context, desired *plan.Desired, origin ownership.Origin,
	how ownership.How) (objects.Owner, error) {
	others, err := a.claimsOn(ctx, ownerOf(a.mr), []objects.Entry{entryOf(desired)})
	if err != nil {
		return objects.Owner{}, err
	}
	claims, _ := others.on(desired.Ref.ID) // The scope in the plan is known.
	claim, _ := ownership.Owner(claims, origin, how)
	return claim.Owner, nil
}
