package objects

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// run has the claims of a ManagedResource's run on its objects: it applies some, and leaves others, which it deletes,
// hands over or releases. A ManagedResource that leaves an object does not count as a keeper: else two that leave it
// at the same time would each leave it to the other. A ManagedResource that applies an object counts as a keeper,
// though its inventory does not have the object yet.
//
// Invariant: no object is deleted that another run claims at any time between its judgement and the answer to its
// deletion. A run claims the objects that it leaves before it finds out who else has them, and the objects that it
// applies before it writes its inventory. The second of two runs learns of the first: the deletion is refused if
// another run wants the object, and a run that claims an object whose deletion is under way is busy: it ends, and the
// answer wakes it. Nor is an object handed over to a ManagedResource whose run leaves it: the hand-over is refused, or
// that run is busy. No run waits for another one.
type run struct {
	applies  map[*record]struct{}
	releases map[*record]*release
}

// release is the claim of a run on an object that it leaves.
type release struct {
	// wanted is true if another run has claimed to apply the object, before or after this claim.
	wanted bool
	// deleting counts its deletions that are under way: two entries may be about one object.
	deleting int
}

// dropped has the objects that the last plan for one form of a ManagedResource left out, until a run succeeds, the
// form changes, or a change of its Secrets is reported. While its runs fail, its inventory may still have these
// objects, but it does not keep them: else two failing ManagedResources would hand an object to each other for ever.
type dropped struct {
	uid        types.UID
	generation int64
	keys       map[ID]struct{}
}

// handOver is an object that is being handed to a ManagedResource.
type handOver struct {
	to  Owner
	key ID
}

// BeginRun claims, for a run of a ManagedResource, objects that it has on record. It claims nothing and returns true
// if the run is busy: another run is deleting an object that it applies, or is handing over to it an object that it
// leaves. The answer to that request wakes the run.
func (l *Tracker) BeginRun(owner Owner, applies, releases []ID) (busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return false
	}
	o.run = &run{applies: make(map[*record]struct{}, len(applies)), releases: make(map[*record]*release, len(releases))}
	for _, key := range applies {
		if r := l.findLocked(key); r != nil && l.appliesLocked(o, r) {
			l.waitLocked(owner, key)
			busy = true
		}
	}
	for _, key := range releases {
		if r := l.findLocked(key); r != nil && l.releasesLocked(o, r) {
			l.waitLocked(owner, key)
			busy = true
		}
	}
	if busy {
		o.run = nil
	}
	return busy
}

// ReleaseAlso claims one more object that a run leaves, which need not be on record yet. It returns true, and claims
// nothing, if the object is being handed to the ManagedResource.
func (l *Tracker) ReleaseAlso(owner Owner, ref Ref) (busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil || o.run == nil {
		return false
	}
	r := l.recordLocked(ref)
	if !slices.Contains(r.owners, o) {
		r.owners = slices.Insert(r.owners, min(int(r.passed), len(r.owners)), o) // It needs no notice of drift.
		o.records = append(o.records, r)
	}
	return l.releasesLocked(o, r)
}

// EndRun ends the claims of a run.
func (l *Tracker) EndRun(owner Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.owners[owner]; o != nil {
		o.run = nil
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

// releasesLocked claims an object for a run that leaves it, and reports whether another run is handing it to the
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

// releases returns the claim of a run that is under way and leaves an object; nil if there is none.
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

// Releases reports whether a run that is under way leaves an object.
func (l *Tracker) Releases(owner Owner, key ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owners[owner].releases(l.findLocked(key)) != nil
}

// Drop records the objects that the last plan for a form of a ManagedResource leaves out; without objects it forgets
// those of an earlier plan.
func (l *Tracker) Drop(owner Owner, uid types.UID, generation int64, keys ...ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return
	}
	o.dropped = dropped{}
	if len(keys) > 0 {
		o.dropped = dropped{uid, generation, make(map[ID]struct{}, len(keys))}
		for _, key := range keys {
			o.dropped.keys[key] = struct{}{}
		}
	}
}

// HasDropped reports whether an earlier plan for the same form of a ManagedResource left out all of the objects, too,
// and is still valid.
func (l *Tracker) HasDropped(owner Owner, uid types.UID, generation int64, keys []ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	return len(keys) == 0 || o != nil &&
		!slices.ContainsFunc(keys, func(key ID) bool { return !o.dropped.has(uid, generation, key) })
}

func (d dropped) has(uid types.UID, generation int64, key ID) bool {
	_, dropped := d.keys[key]
	return dropped && d.uid == uid && d.generation == generation
}

// Keeps reports whether a form of a ManagedResource that has an object in its inventory is going to keep it.
func (l *Tracker) Keeps(owner Owner, uid types.UID, generation int64, key ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	return o == nil || o.releases(l.findLocked(key)) == nil && !o.dropped.has(uid, generation, key)
}

// SetIgnored records the objects of an ignored ManagedResource: it keeps its objects, and has none on record. That
// ends when the ManagedResource has objects on record again, or with SetIgnored without objects.
func (l *Tracker) SetIgnored(owner Owner, keys []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ignored, owner)
	if len(keys) == 0 {
		return
	}
	set := make(map[ID]struct{}, len(keys))
	for _, key := range keys {
		set[key] = struct{}{}
	}
	l.ignored[owner] = set
	l.recordedLocked(owner)
}

func (l *Tracker) ignoredHaveLocked(key ID) bool {
	for _, keys := range l.ignored {
		if _, has := keys[key]; has {
			return true
		}
	}
	return false
}
