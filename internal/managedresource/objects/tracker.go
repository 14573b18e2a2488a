package objects

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// Owner is the name of a ManagedResource that has an object.
type Owner = types.NamespacedName

// Tracker has the tracked state of all managed objects. Its parts share one lock and the records. It is safe for
// concurrent use.
type Tracker struct {
	*table
	// Observations records the reports of watches, reads and runs about objects.
	*Observations
	// Claims records the claims of runs on objects, and the requests of runs about them.
	*Claims
	// Repairs records the drift of objects, and paces their repairs.
	*Repairs
}

// New returns an empty tracker.
func New() *Tracker {
	t := &table{
		records:    map[kind]map[name]*record{},
		owners:     map[Owner]*ownerRecord{},
		rares:      map[*record]struct{}{},
		subscriber: Subscriber{Drift: func(Owner, ID) {}, Health: func(Owner) {}, Restored: func(string) {}},
	}
	return &Tracker{t, &Observations{t}, &Claims{t, map[handOver]int{}}, &Repairs{table: t}}
}

// Subscriber has the callbacks for changes. They are called outside the lock of the Tracker, but possibly under a
// lock of the target's watches, which they must therefore not call.
type Subscriber struct {
	// Drift is called when an object of a ManagedResource may have drifted; Health is called when the health of an
	// object changed.
	Drift  func(Owner, ID)
	Health func(Owner)
	// Restored is called with the proof when a response shows that the store was restored to an earlier state.
	Restored func(proof string)
}

// Subscribe sets the callbacks that are not nil. Earlier reports are not repeated.
func (t *Tracker) Subscribe(s Subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Drift != nil {
		t.subscriber.Drift = s.Drift
	}
	if s.Health != nil {
		t.subscriber.Health = s.Health
	}
	if s.Restored != nil {
		t.subscriber.Restored = s.Restored
	}
}

// Track sets the objects of a ManagedResource. Its former objects are dropped, unless another ManagedResource has
// them.
func (t *Tracker) Track(owner Owner, refs []Ref) {
	t.update(func(notify *notices) { t.trackLocked(owner, refs, notify) })
}

func (t *table) trackLocked(owner Owner, refs []Ref, notify *notices) {
	o := t.owners[owner]
	if o == nil {
		if len(refs) == 0 {
			return
		}
		o = &ownerRecord{owner: owner, outOfSync: map[*record]struct{}{}}
		t.owners[owner] = o
	}
	before := *o
	wanted := make(map[*record]struct{}, len(refs))
	o.records, o.versions = make([]*record, 0, len(refs)), nil
	for _, ref := range refs {
		r := t.recordLocked(ref)
		if _, twice := wanted[r]; twice {
			continue // The first version is from the manifest, before the version of the inventory.
		}
		wanted[r] = struct{}{}
		t.addLocked(o, r, versionOf(ref), &before, notify)
	}
	for _, r := range before.records {
		if _, kept := wanted[r]; !kept {
			t.dropOwnerLocked(r, o, notify)
		}
	}
	if len(refs) == 0 {
		delete(t.owners, owner)
	}
}

// addLocked adds an object to a ManagedResource; before has its previous objects.
func (t *table) addLocked(o *ownerRecord, r *record, version unique.Handle[string], before *ownerRecord,
	notify *notices) {
	o.records = append(o.records, r)
	if version != r.version {
		o.versions = with(o.versions, r, version)
	}
	if slices.Contains(r.owners, o) {
		if before.version(r) != o.version(r) {
			t.listsChangedLocked(r, notify)
		}
		return
	}
	r.owners = append(r.owners, o)
	if r.sync == outOfSync {
		o.outOfSync[r] = struct{}{}
	}
}

func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// dropOwnerLocked removes an owner of an object. If it may have been the writer, the other owners must check the
// object.
func (t *table) dropOwnerLocked(r *record, o *ownerRecord, notify *notices) {
	r.checkedLocked(o)
	mayKeep := !r.hasWriter || r.owners[0] == o
	r.owners = slices.DeleteFunc(r.owners, func(other *ownerRecord) bool { return other == o })
	t.claimEndsLocked(r, o)
	if len(r.owners) > 0 {
		if mayKeep {
			r.hasWriter = false
			r.outOfSyncLocked(notify)
		}
		return
	}
	delete(t.rares, r)
	delete(t.records[r.kind], r.name)
	if len(t.records[r.kind]) == 0 {
		delete(t.records, r.kind)
	}
}

// Progress is the state of the objects of a ManagedResource.
type Progress struct {
	// Refs are all objects, OutOfSync those that must be checked.
	Refs      []Ref
	OutOfSync []ID
	// AllKnown is true if there are tracked objects, and a read or a watch has looked up each of them, so that their
	// health can be assessed.
	AllKnown bool
}

// Progress returns the state of the objects of a ManagedResource.
func (t *Tracker) Progress(owner Owner) (progress Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owners[owner]
	if o == nil {
		return progress
	}
	progress.Refs, progress.AllKnown = make([]Ref, 0, len(o.records)), true
	for _, r := range o.records {
		progress.Refs = append(progress.Refs, o.ref(r))
		progress.AllKnown = progress.AllKnown && r.state != unseen
	}
	for r := range o.outOfSync {
		progress.OutOfSync = append(progress.OutOfSync, r.key())
	}
	return progress
}
