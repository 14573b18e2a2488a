package apply

import (
	"context"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// confirmInventory reads the ManagedResource from the API server before the first write for it. The caller uses it if
// there may be an unknown write to the status, which may have removed objects of the plan from the inventory.
func (a *Run) confirmInventory(ctx context.Context) error {
	live, err := a.Source.Confirm(ctx, a.mr)
	if err != nil {
		return err
	}
	entries := byKey(live.Status.Resources)
	for i := range a.plan.Inventory {
		if _, found := entries[objects.IDOfEntry(&a.plan.Inventory[i])]; !found {
			return steps.ErrSuperseded // The next run announces the object.
		}
	}
	return nil
}

// namedKept is the number of objects of other owners that a condition names.
const namedKept = 10

// KeptByOthers returns the part of the condition's message about objects that other ManagedResources keep (MRB-16);
// empty if there are none.
func (a *Run) KeptByOthers() string {
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
	return " Kept by other ManagedResources, which alone write them: " + plan.JoinNames(names, namedKept) + "."
}

// Inventory returns the inventory at the end of the run: planned entries stay planned until their objects are written.
//
// Its branches are the ways in which an object that is created only once may have been created.
func (a *Run) Inventory() []resourcesv1alpha1.ObjectReference {
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
		// Another ManagedResource owns the object now. If it releases the object, the record would be a false proof.
		case done.anothers:
			inventory[i] = meta.AsTentative(inventory[i])
		case found && (done.result == "created" || a.Owners.CreatedFor(steps.OwnerOf(a.mr), desired.Ref.ID) == done.observation.UID &&
			done.observation.UID != ""):
			// This includes an object that an earlier run created without recording it.
			inventory[i].FieldPath, inventory[i].UID = "", done.observation.UID
		case desired.Old == nil || !steps.CreatedOnce(desired.Old):
			// The object existed before: it belongs to another writer, or its origin names its owner.
			inventory[i] = meta.AsTentative(inventory[i])
		}
	}
	return inventory
}

// PartialInventory returns the inventory after a run that failed or was superseded, based on the current inventory of
// the status. Objects that the run wrote or found in sync get their new entries (MRB-3). Objects that got the origin
// of the ManagedResource get an entry even if it was removed. An entry that differs from the announced one stays,
// because another writer has handled the object since: for instance the next leader, if this process stood still.
func (a *Run) PartialInventory(current []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	announced, next := byKey(a.mr.Status.Resources), byKey(a.Inventory())
	inventory, present := slices.Clone(current), byKey(current)
	for i := range inventory {
		key := objects.IDOfEntry(&inventory[i])
		before, found := announced[key]
		if _, written := a.written[key]; written && found &&
			meta.SameInventory(inventory[i:i+1], []resourcesv1alpha1.ObjectReference{before}) {
			inventory[i] = next[key]
		}
	}
	for key, entry := range next {
		if _, found := present[key]; !found && a.written[key].gainedOrigin() {
			inventory = append(inventory, entry)
		}
	}
	if len(inventory) > len(current) {
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
