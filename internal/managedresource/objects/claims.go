package objects

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// run has the claims of a ManagedResource's run on its objects: it applies some, and releases others, which it deletes,
// hands over or leaves. A ManagedResource that releases an object does not keep it: else two that release it at the
// same time would each leave it to the other. A ManagedResource that applies an object keeps it, though its inventory
// does not have the object yet.
//
// Invariant: no object is deleted that another run claims at any time between its judgement and the answer to its
// deletion. A run claims the objects that it releases before it finds out who else has them, and the objects that it
// applies before it writes its inventory. The second of two runs learns of the first: the deletion is refused if
// another run wants the object, and a run that claims an object whose deletion is under way is busy: it ends, and the
// answer wakes it. Nor is an object handed over to a ManagedResource whose run releases it: the hand-over is refused,
// or that run is busy. No run waits for another one.
type run struct {
	applies  map[*record]struct{}
	releases map[*record]*release
}

// release is the claim of a run on an object that it releases.
type release struct {
	// wanted is true if another run has claimed to apply the object, before or after this claim.
	wanted bool
	// deleting counts its deletions that are under way: two entries may be about one object.
	deleting int
}

// handOver is an object that is being handed to a ManagedResource.
type handOver struct {
	to  Owner
	key ID
}

// inventory has the objects in the inventory of a ManagedResource that are not on record for it; all of them if the
// ManagedResource is ignored, as it keeps its objects and has none on record.
type inventory struct {
	ids     map[ID]struct{}
	ignored bool
}

// Form is a specification of a ManagedResource.
type Form struct {
	UID        types.UID
	Generation int64
}

// dropped has the objects that the last plan for one form of a ManagedResource left out, until a run succeeds, the
// form changes, or a change of its Secrets is reported. While its runs fail, its inventory may still have these
// objects, but it does not keep them: else two failing ManagedResources would hand an object to each other for ever.
type dropped struct {
	form Form
	ids  map[ID]struct{}
}

// Claim is the claim of a ManagedResource on an object.
type Claim struct {
	// Releases is true if a run that is under way deletes, hands over or releases the object.
	Releases bool
	// Dropped is the form whose last plan left the object out; zero if there is none.
	Dropped Form
}

// ClaimOf returns the claim of a ManagedResource on an object.
func (l *Tracker) ClaimOf(owner Owner, id ID) (claim Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.owners[owner]; o != nil {
		claim.Releases = o.releases(l.findLocked(id)) != nil
		if _, isDropped := o.dropped.ids[id]; isDropped {
			claim.Dropped = o.dropped.form
		}
	}
	return claim
}

// Claimant is a ManagedResource that may have one of some objects.
type Claimant struct {
	Owner Owner
	// Has is true if it has one on record or in its inventory. Otherwise a part of its inventory is not on record, so that
	// a later inventory may have one.
	Has bool
}

// Claimants returns the ManagedResources that may have one of some objects. If clusterScoped holds for the kind of an
// object, its namespace does not matter; the cost then depends on the objects of the kind if any of them is recorded
// with another namespace, as after a change of the scope.
func (l *Tracker) Claimants(ids []ID, clusterScoped func(schema.GroupKind) bool) []Claimant {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[Owner]bool{}
	add := func(r *record) {
		for _, o := range r.owners {
			found[o.owner] = true
		}
	}
	var anywhere map[ID]struct{}
	for _, id := range ids {
		if clusterScoped(id.GroupKind()) {
			id = id.Scoped(true)
			anywhere = with(anywhere, id, struct{}{})
		}
		if r := l.findLocked(id); r != nil {
			add(r)
		}
	}
	isAnywhere := func(id ID) bool {
		_, is := anywhere[id.Scoped(true)]
		return is
	}
	for k, number := range l.elsewhere {
		if number == 0 || !clusterScoped(k.Value()) {
			continue
		}
		for _, r := range l.records[k] {
			if isAnywhere(r.key()) {
				add(r)
			}
		}
	}
	for owner, its := range l.inventories {
		has := slices.ContainsFunc(ids, func(id ID) bool { _, exactly := its.ids[id]; return exactly }) ||
			anywhere != nil && slices.ContainsFunc(slices.Collect(maps.Keys(its.ids)), isAnywhere)
		if has || !its.ignored {
			found[owner] = found[owner] || has
		}
	}
	claimants := make([]Claimant, 0, len(found))
	for owner, has := range found {
		claimants = append(claimants, Claimant{owner, has})
	}
	return claimants
}

// SeeInventory records the inventory of a ManagedResource as the source has it. An object in it may not be on record,
// because no run has begun, another process wrote the inventory, or the ManagedResource is ignored. An empty inventory
// forgets the ManagedResource. An ignored one stays so until it has objects on record again.
func (l *Tracker) SeeInventory(owner Owner, ids []ID, ignored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	its := inventory{ignored: ignored}
	for _, id := range ids {
		if ignored || !l.hasLocked(owner, id) {
			its.ids = with(its.ids, id, struct{}{})
		}
	}
	if delete(l.inventories, owner); len(its.ids) > 0 {
		l.inventories[owner] = its
	}
}

// recordedLocked removes, from the inventory of a ManagedResource, the objects that are on record now. It is not ignored
// any more if it has some.
func (l *Tracker) recordedLocked(owner Owner) {
	its, seen := l.inventories[owner]
	if !seen || l.owners[owner] == nil {
		return
	}
	its.ignored = its.ignored && len(l.owners[owner].records) == 0
	if !its.ignored {
		maps.DeleteFunc(its.ids, func(id ID, _ struct{}) bool { return l.hasLocked(owner, id) })
	}
	if l.inventories[owner] = its; len(its.ids) == 0 {
		delete(l.inventories, owner)
	}
}

func (l *Tracker) hasLocked(owner Owner, id ID) bool {
	o, r := l.owners[owner], l.findLocked(id)
	return o != nil && r != nil && slices.Contains(r.owners, o)
}

// Claim claims objects for a run of a ManagedResource: those that it applies, which are on record, and those that it
// releases. The first call begins the run; it claims nothing and returns true if the run is busy: another run is
// deleting an object that it applies, or is handing over to it an object that it releases. The answer to that request
// wakes the run. A later call adds objects.
func (l *Tracker) Claim(owner Owner, applies []ID, releases []Ref) (busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return false
	}
	begins := o.run == nil
	if begins {
		o.run = &run{make(map[*record]struct{}, len(applies)), make(map[*record]*release, len(releases))}
	}
	for _, id := range applies {
		if r := l.findLocked(id); r != nil && l.appliesLocked(o, r) {
			l.waitLocked(owner, id)
			busy = true
		}
	}
	for _, ref := range releases {
		r := l.recordLocked(ref)
		if !slices.Contains(r.owners, o) {
			r.owners = slices.Insert(r.owners, min(int(r.passed), len(r.owners)), o) // It needs no notice of drift.
			o.records = append(o.records, r)
		}
		if l.releasesLocked(o, r) {
			l.waitLocked(owner, ref.ID)
			busy = true
		}
	}
	if busy && begins {
		o.run = nil
	}
	return busy
}

// EndRun ends the claims of a run.
func (l *Tracker) EndRun(owner Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.owners[owner]; o != nil {
		o.run = nil
	}
}

// Drop records the objects that the last plan for a form of a ManagedResource leaves out; without objects it forgets
// those of an earlier plan.
func (l *Tracker) Drop(owner Owner, form Form, ids ...ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return
	}
	o.dropped = dropped{form, make(map[ID]struct{}, len(ids))}
	for _, id := range ids {
		o.dropped.ids[id] = struct{}{}
	}
}

// appliesLocked claims an object for a run that applies it, and reports whether another run is deleting it.
func (l *Tracker) appliesLocked(o *ownerRecord, r *record) (busy bool) {
	o.run.applies[r] = struct{}{}
	for _, other := range r.owners {
		if other == o || other.run == nil {
			continue
		}
		if left := other.run.releases[r]; left != nil {
			left.wanted = true
			busy = busy || left.deleting > 0
		}
	}
	return busy
}

// releasesLocked claims an object for a run that releases it, and reports whether another run is handing it to the
// ManagedResource.
func (l *Tracker) releasesLocked(o *ownerRecord, r *record) (busy bool) {
	if l.handOvers[handOver{o.owner, r.key()}] > 0 {
		return true
	}
	if o.run.releases[r] == nil {
		o.run.releases[r] = &release{wanted: slices.ContainsFunc(r.owners,
			func(other *ownerRecord) bool { return other != o && other.applies(r) })}
	}
	return false
}

func (o *ownerRecord) applies(r *record) bool {
	if o.run == nil {
		return false
	}
	_, applies := o.run.applies[r]
	return applies
}

// releases returns the claim of a run that is under way and releases an object; nil if there is none.
func (o *ownerRecord) releases(r *record) *release {
	if o == nil || o.run == nil || r == nil {
		return nil
	}
	return o.run.releases[r]
}

func (l *Tracker) waitLocked(owner Owner, key ID) {
	if !slices.Contains(l.waiting[key], owner) {
		l.waiting[key] = append(l.waiting[key], owner)
	}
}
