package controller

import (
	"context"
	"fmt"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
)

// PreloadInventories tells the watches of the target, before they start, of every object that is in an inventory. Their
// first lists bring what the first runs compare, and what health is judged by, so that a restart costs requests for
// each kind and not for each object.
func (r *Reconciler) PreloadInventories(ctx context.Context) error {
	err := r.Statuses.All(ctx, func(mr *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Handles(mr) || r.Class.WaitsForHandOver(mr) {
			return
		}
		if meta.Ignored(mr) {
			r.Tracker.SetIgnored(ownerOf(mr), keysOf(mr.Status.Resources))
			return
		}
		r.Watches.Expect(ownerOf(mr), refsOf(mr.Status.Resources))
	})
	if err != nil {
		return fmt.Errorf("reading the inventories of all ManagedResources: %w", err)
	}
	return nil
}
