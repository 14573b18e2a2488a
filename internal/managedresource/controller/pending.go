package controller

import (
	"maps"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// waiting is what a run went by that ended while deletions are pending.
//
// Invariant: it saves reading and decoding the Secrets once more, and, of a run that applied the new objects, looking at those that no watch covers. It
// counts while each object is put off, so for a minute at most, and for a sync period at most. It ends with whatever was told since that run began, of
// its new objects, too: nothing that came in between is taken for known.
type waiting struct {
	generation int64
	raised     uint64
	told       map[string]string
	deletions  int
	// applied and inventory are what the run made of the status.
	applied   meta.ConditionChange
	inventory uint64
	refs      []resourcesv1alpha1.ObjectReference
	until     time.Time
}

// waits notes that a run, which began with what pass says, ended so while objects are not gone. It is doubtful itself.
func (p *passes) waits(mr *resourcesv1alpha1.ManagedResource, began pass, ended end, refs []resourcesv1alpha1.ObjectReference, until time.Time) {
	w := &waiting{
		generation: mr.Generation, raised: began.raised + 1, told: began.told, deletions: began.deletions,
		applied: ended.applied, inventory: ended.inventory, refs: refs, until: until,
	}
	p.update(mr, func(pass *pass) {
		pass.raise(false)
		pass.waiting = w
	})
}

// waitsFor returns the objects whose end is all that a ManagedResource waits for, as far as anybody told since that was found; none if a run is needed.
func (p *pass) waitsFor(mr *resourcesv1alpha1.ManagedResource, now time.Time) []resourcesv1alpha1.ObjectReference {
	w := p.waiting
	if w == nil || !now.Before(w.until) || w.generation != mr.Generation || w.raised != p.raised || w.deletions != p.deletions || !maps.Equal(w.told, p.told) {
		return nil
	}
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	if condition == nil || condition.Status != w.applied.Status || condition.Reason != w.applied.Reason || meta.InventoryDigest(mr.Status.Resources) != w.inventory {
		return nil // Others wrote the status.
	}
	return w.refs
}

// stillWaits says whether a run, which would begin with what pass says, would find what the last one did: objects that are not gone, and nothing else to do.
func (r *Reconciler) stillWaits(mr *resourcesv1alpha1.ManagedResource, began pass) bool {
	owner := ownerOf(mr)
	if *r.Config.ApplyWhileDeletionPending && len(r.Ledger.Dirty(owner)) > 0 {
		return false // It puts them right meanwhile.
	}
	return r.arePutOff(owner, began.waitsFor(mr, r.Clock.Now()))
}

// arePutOff says whether a run would look at none of the objects, and find that one of them at least is not gone.
func (r *Reconciler) arePutOff(owner objects.Owner, refs []resourcesv1alpha1.ObjectReference) bool {
	found := false
	for i := range refs {
		entry := target.RefOf(&refs[i])
		if r.Ledger.IsDeletionSettled(owner, entry.Key, r.Clock.Now()) {
			continue
		}
		if held, _ := r.isHeld(owner, entry); !held {
			return false
		}
		found = true
	}
	return found
}

// isHeld says whether an object that is to go was there less than a minute ago, and nobody told of anything else, and why it is.
func (r *Reconciler) isHeld(owner objects.Owner, entry objects.Ref) (held bool, err error) {
	pending, held := r.Ledger.DeletionPends(owner, entry.Key, r.Clock.Now())
	if !held {
		return false, nil
	}
	finding := r.Ledger.Lookup(entry.Key)
	another := pending.UID != "" && finding.UID != "" && finding.UID != pending.UID
	if finding.Known && (!finding.Present || another) && r.Watches.Covered(entry) {
		return false, nil
	}
	return true, pending.Err
}
