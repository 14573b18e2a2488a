package controller

import (
	"sync"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// aside has what the ManagedResources have that are ignored: they keep it, and the ledger does not know.
//
// Invariant: one is in it from the run that found it ignored until it is on record again, or is forgotten.
type aside struct {
	mu      sync.Mutex
	byOwner map[objects.Owner]map[plan.Key]struct{}
}

// put notes what an ignored ManagedResource has.
func (a *aside) put(mr *resourcesv1alpha1.ManagedResource) {
	keys := make(map[plan.Key]struct{}, len(mr.Status.Resources))
	for i := range mr.Status.Resources {
		keys[plan.KeyOfReference(&mr.Status.Resources[i].ObjectReference)] = struct{}{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byOwner == nil {
		a.byOwner = map[objects.Owner]map[plan.Key]struct{}{}
	}
	a.byOwner[ownerOf(mr)] = keys
}

// take forgets one that is on record again, or is not to be remembered.
func (a *aside) take(owner objects.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byOwner, owner)
}

// has says whether one that is ignored has an object.
func (a *aside) has(key plan.Key) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, keys := range a.byOwner {
		if _, found := keys[key]; found {
			return true
		}
	}
	return false
}
