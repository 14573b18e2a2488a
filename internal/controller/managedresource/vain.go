package managedresource

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/espalier-project/espalier/internal/engine/ledger"
)

const (
	// vainFor is for how long a write is not sent again that changed nothing, at least, and twice that at most: what the API server
	// makes of it may change with its version, its features and its webhooks, which nothing here sees.
	vainFor = 30 * time.Minute
	// maxVain is how many are remembered at least: a megabyte's worth. Whatever is forgotten is sent once more.
	maxVain = 20_000
)

// vain remembers which writes API servers took and answered with what was there before. They drop fields whose features are
// switched off, and spell some values in a way that no table here knows (MRB-8).
type vain struct {
	mu    sync.Mutex
	since time.Time
	// now are those noted since then, before those of the time before.
	now, before map[write]struct{}
}

// write stands for the contents of an object as it is and of what is written over it. Its status has no part in either, so that it may
// change meanwhile.
type write struct{ live, merged uint64 }

func writeOf(live, merged *unstructured.Unstructured) write {
	return write{ledger.ContentDigest(live.Object), ledger.ContentDigest(merged.Object)}
}

// note remembers a write that changed nothing.
func (v *vain) note(now time.Time, w write) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetLocked(now)
	if v.now == nil || len(v.now) >= maxVain {
		v.before, v.now = v.now, map[write]struct{}{}
	}
	v.now[w] = struct{}{}
}

// has says whether a write is known to change nothing.
func (v *vain) has(now time.Time, w write) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forgetLocked(now)
	_, found := v.now[w]
	if !found {
		_, found = v.before[w]
	}
	return found
}

func (v *vain) forgetLocked(now time.Time) {
	switch passed := now.Sub(v.since); {
	case passed >= 2*vainFor:
		v.since, v.before, v.now = now, nil, nil
	case passed >= vainFor:
		v.since, v.before, v.now = now, v.now, nil
	}
}
