package managedresource

import (
	"context"
	"fmt"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/engine/ledger"
	"github.com/espalier-project/espalier/internal/engine/managed"
	"github.com/espalier-project/espalier/internal/engine/targetcluster"
)

// Expect tells the watches of the target, before they start, of every object that is in an inventory. Their first lists bring
// what the first runs compare, and what health is judged by, so that a restart costs requests for each kind and not for each
// object.
func (r *Reconciler) Expect(ctx context.Context) error {
	err := r.Statuses.Others(ctx, ledger.Owner{}, func(mr *resourcesv1alpha1.ManagedResource) {
		if !r.Class.Concerns(mr) || r.Class.WaitsForHandOver(mr) {
			return
		}
		if managed.Ignored(mr) {
			r.aside.put(mr)
			return
		}
		refs := make([]ledger.Ref, 0, len(mr.Status.Resources))
		for i := range mr.Status.Resources {
			refs = append(refs, targetcluster.RefOf(&mr.Status.Resources[i]))
		}
		r.Watches.Expect(ownerOf(mr), refs)
	})
	if err != nil {
		return fmt.Errorf("reading the inventories of all ManagedResources: %w", err)
	}
	return nil
}
