package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// reasonOrphans is the reason of the Event about orphans.
const reasonOrphans = "OrphansFound"

// namedOrphans is the number of orphans that an Event names.
const namedOrphans = 10

// orphans collects the orphans of one audit: objects whose origin is a ManagedResource of this source that is applied
// completely, and that no inventory names, as after a restore of etcd or an answer that was lost. They are counted
// and reported, but never written, and cost no request except one Event for each ManagedResource, because anyone who
// may write in the target can forge them. Only one goroutine uses it.
type orphans struct {
	reconciler *Reconciler
	byOwner    map[objects.Owner]*orphansOf
}

// orphansOf are the orphans of one ManagedResource: their number, and the first names.
type orphansOf struct {
	number int
	names  []string
}

// Orphans returns the callbacks that count and report the orphans of audits.
func (r *Reconciler) Orphans() target.Orphans {
	o := &orphans{reconciler: r, byOwner: map[objects.Owner]*orphansOf{}}
	return target.Orphans{Found: o.found, Ended: o.ended}
}

// found adds the orphans of a kind.
func (o *orphans) found(ctx context.Context, all []target.Orphan) {
	r := o.reconciler
	owners := map[objects.ID]*resourcesv1alpha1.ManagedResource{}
	for _, orphan := range all {
		if mr := o.ownerOf(ctx, orphan); mr != nil {
			owners[orphan.ID] = mr
		}
	}
	if err := o.dropRecorded(ctx, owners); err != nil {
		return // The next audit finds them again.
	}
	for _, orphan := range all {
		mr := owners[orphan.ID]
		if mr == nil {
			continue
		}
		r.Metrics.orphans.WithLabelValues(orphan.ID.Kind).Inc()
		its := o.byOwner[steps.OwnerOf(mr)]
		if its == nil {
			its = &orphansOf{}
			o.byOwner[steps.OwnerOf(mr)] = its
		}
		if its.number++; its.number <= namedOrphans {
			its.names = append(its.names, meta.ObjectName(orphan.ID.Kind, orphan.ID.Namespace, orphan.ID.Name))
		}
	}
}

// ended reports the orphans that the audit has found.
func (o *orphans) ended(ctx context.Context) {
	r := o.reconciler
	for owner, its := range o.byOwner {
		delete(o.byOwner, owner)
		mr, err := r.Statuses.Get(ctx, owner)
		if err != nil {
			continue // The ManagedResource is gone.
		}
		slices.Sort(its.names)
		r.Events.Warn(ctx, mr, reasonOrphans,
			fmt.Sprintf("Objects with this ManagedResource as their origin that no inventory has (%d): %s. "+
				"They are neither repaired nor deleted.", its.number, plan.JoinFirst(its.names, its.number)))
	}
}

// ownerOf returns the ManagedResource that an orphan names, from the cache; nil if its state proves nothing about
// objects that no inventory has, or may soon change.
func (o *orphans) ownerOf(ctx context.Context, orphan target.Orphan) *resourcesv1alpha1.ManagedResource {
	r := o.reconciler
	if orphan.Collectable && r.GarbageCollector {
		return nil // The garbage collector deletes it.
	}
	origin, err := meta.ParseOrigin(orphan.Origin)
	if foreign := err != nil || origin.ClusterID != r.Identity; foreign {
		return nil
	}
	mr, err := r.Statuses.Get(ctx, origin.Key)
	// Objects of a ManagedResource that is gone may have been left on purpose.
	if err != nil || !r.Class.Responsible(mr) || mr.DeletionTimestamp != nil || meta.Ignored(mr) ||
		ptr.Deref(mr.Spec.KeepObjects, false) {
		return nil
	}
	if !r.states.get(mr).AtRest(mr.Generation) {
		return nil // Its next run may handle this object. The next audit checks again.
	}
	return mr
}

// dropRecorded removes the objects that the tracker or an inventory has, also by a kind that is equivalent for the
// ManagedResource of the origin (MRD-13).
func (o *orphans) dropRecorded(ctx context.Context,
	owners map[objects.ID]*resourcesv1alpha1.ManagedResource) error {
	r := o.reconciler
	if len(owners) == 0 {
		return nil
	}
	names := map[objects.ID]objects.ID{} // Each name of each object.
	for id, mr := range owners {
		for _, name := range plan.NewEquivalences(mr.Spec.Equivalences).Keys(id) {
			names[name] = id
			if r.Tracker.Get(name).Tracked {
				delete(owners, id)
			}
		}
	}
	return r.Statuses.All(ctx, objects.Owner{}, func(mr *resourcesv1alpha1.ManagedResource) {
		for i := range mr.Status.Resources {
			delete(owners, names[objects.IDOfEntry(&mr.Status.Resources[i])])
		}
	})
}
