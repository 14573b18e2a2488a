package objects

import "sync"

// table has the records, and the lock of all parts of the Tracker.
type table struct {
	mu       sync.Mutex
	records  map[kind]map[name]*record
	owners   map[Owner]*ownerRecord
	listings uint32
	// rares are the records with a rare part, which Sweep visits.
	rares      map[*record]struct{}
	subscriber Subscriber
}

// recordLocked finds or creates the record of a reference.
func (t *table) recordLocked(ref Ref) *record {
	k, n := split(ref.ID)
	byName := t.records[k]
	if byName == nil {
		byName = map[name]*record{}
		t.records[k] = byName
	}
	r := byName[n]
	if r == nil {
		r = &record{recordID: recordID{k, n}, coverage: coverage{version: versionOf(ref), since: t.listings}}
		byName[n] = r
	}
	return r
}

func (t *table) findLocked(key ID) *record {
	k, n := split(key)
	return t.records[k][n]
}

// update changes records under the lock, and notifies subscribers once the lock is free.
func (t *table) update(change func(notify *notices)) {
	var notify notices
	func() {
		t.mu.Lock()
		defer t.mu.Unlock() // Also after a panic, which ends one run only.
		change(&notify)
	}()
	notify.send(t)
}

// updateObject changes the record of one object, like update, if any ManagedResource has the object.
func (t *table) updateObject(key ID, change func(r *record, notify *notices)) {
	t.update(func(notify *notices) {
		if r := t.findLocked(key); r != nil {
			change(r, notify)
		}
	})
}

// notices are the notifications that subscribers receive once the lock is free.
type notices struct {
	drift []drift
	// health are the ManagedResources with objects whose health changed.
	health []Owner
	// restored is the proof of a restore; empty for none.
	restored string
}

type drift struct {
	owner Owner
	key   ID
}

func (n *notices) healthOf(r *record) {
	for _, o := range r.owners {
		n.health = append(n.health, o.owner)
	}
}

func (n *notices) send(t *table) {
	if len(n.drift) == 0 && len(n.health) == 0 && n.restored == "" {
		return
	}
	t.mu.Lock()
	subscriber := t.subscriber
	t.mu.Unlock()
	for _, d := range n.drift {
		subscriber.Drift(d.owner, d.key)
	}
	for _, owner := range n.health {
		subscriber.Health(owner)
	}
	if n.restored != "" {
		subscriber.Restored(n.restored)
	}
}
