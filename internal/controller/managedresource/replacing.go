package managedresource

import (
	"sync"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

// replacing are the objects that runs deleted to create them anew. What watches tell of them is no drift, and nothing delays their
// creation.
//
// Invariant: an object is entered before its deletion is sent, by each ManagedResource whose run does that. It is taken out when it was applied,
// whoever did that; for one of them when its deletion was refused, or when it does not have the object any more. So there are never more of
// them than desired objects.
type replacing struct {
	mu    sync.Mutex
	byKey map[ledger.Key]map[ledger.Owner]struct{}
}

func (r *replacing) enter(key ledger.Key, owner ledger.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[ledger.Key]map[ledger.Owner]struct{}{}
	}
	if r.byKey[key] == nil {
		r.byKey[key] = map[ledger.Owner]struct{}{}
	}
	r.byKey[key][owner] = struct{}{}
}

func (r *replacing) has(key ledger.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byKey[key]) > 0
}

// applied takes out an object that is as it should be.
func (r *replacing) applied(key ledger.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// refused takes out an object for a ManagedResource whose deletion of it was not carried out.
func (r *replacing) refused(key ledger.Key, owner ledger.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(key, owner)
}

// keep takes out the objects of a ManagedResource that it has no more.
func (r *replacing) keep(owner ledger.Owner, has func(ledger.Key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.byKey {
		if !has(key) {
			r.endLocked(key, owner)
		}
	}
}

func (r *replacing) endLocked(key ledger.Key, owner ledger.Owner) {
	if delete(r.byKey[key], owner); len(r.byKey[key]) == 0 {
		delete(r.byKey, key)
	}
}
