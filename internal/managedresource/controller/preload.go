package controller

import (
	"context"
	"fmt"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// PreloadInventories passes all objects of inventories to the watches of the target before they start. Their first
// lists deliver the objects that the first runs compare, and their health, so that a restart costs requests for each
// kind and not for each object.
func (r *Reconciler) PreloadInventories(ctx context.Context) error {
	err := r.Statuses.All(ctx, objects.Owner{}, func(mr *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Handles(mr) || r.Class.WaitsForHandOver(mr) || meta.Ignored(mr) {
			return
		}
		r.Watches.Expect(steps.OwnerOf(mr), refsOf(mr.Status.Resources))
	})
	if err != nil {
		return fmt.Errorf("reading the inventories of all ManagedResources: %w", err)
	}
	return nil
}
