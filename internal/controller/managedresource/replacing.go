package managedresource

import (
	"maps"
	"sync"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

// replacing are the objects that runs deleted to create them anew. What watches tell of them is no drift, and nothing delays their
// creation.
//
// Invariant: an object is entered before its deletion is sent. It is taken out when it was applied, when its deletion was refused,
// or when its ManagedResource does not have it any more. So there are never more of them than desired objects.
type replacing struct {
	mu    sync.Mutex
	byKey map[ledger.Key]ledger.Owner
}

func (r *replacing) enter(key ledger.Key, owner ledger.Owner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[ledger.Key]ledger.Owner{}
	}
	r.byKey[key] = owner
}

func (r *replacing) has(key ledger.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.byKey[key]
	return found
}

func (r *replacing) end(key ledger.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
}

// keep takes out the objects of a ManagedResource that it has no more.
func (r *replacing) keep(owner ledger.Owner, has func(ledger.Key) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.byKey, func(key ledger.Key, of ledger.Owner) bool { return of == owner && !has(key) })
}
