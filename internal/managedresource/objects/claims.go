package objects

import (
	"slices"
)

// run has the claims of a ManagedResource's run on its objects: it applies some, and releases others, which it deletes,
// hands over or leaves. A ManagedResource that releases an object does not keep it: else two that release it at the
// same time would each leave it to the other. A ManagedResource that applies an object keeps it, though its inventory
// does not have the object yet.
//
// Invariant: no object is deleted that another run claims at any time between the decision and the answer to the
// deletion. A run claims the objects that it releases before it finds out who else has them, and the objects that it
// applies before it writes its inventory. The second of two runs learns of the first: the deletion is refused if
// another run wants the object, and a run that claims an object whose deletion is under way is busy: it ends, and is
// tried again. Nor is an object handed over to a ManagedResource whose run releases it: the hand-over is refused, or
// that run is busy. No run waits for another one.
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

// Claims is the part of the Tracker that knows which runs apply, release or delete an object.
type Claims struct {
	*table
	// handOvers counts the hand-overs that are under way.
	handOvers map[handOver]int
}

// handOver is an object that is being handed to a ManagedResource.
type handOver struct {
	to  Owner
	key ID
}

// Releases reports whether a run of a ManagedResource that is under way deletes, hands over or leaves an object.
func (c *Claims) Releases(owner Owner, id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[owner].releases(c.findLocked(id)) != nil
}

// Claim claims objects for a run of a ManagedResource: those that it applies, which are tracked, and those that it
// releases. The first call begins the run, and returns the function that ends it; it claims nothing and returns true if
// the run is busy: another run is deleting an object that it applies, or is handing over to it an object that it
// releases. A later call adds objects. The pending deletions of objects that a run does not release end when it begins.
func (c *Claims) Claim(owner Owner, applies []ID, releases []Ref) (end func(), busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.owners[owner]
	if o == nil {
		return func() {}, false
	}
	begins := o.run == nil
	if begins {
		o.run = &run{make(map[*record]struct{}, len(applies)), make(map[*record]*release, len(releases))}
	}
	for _, id := range applies {
		if r := c.findLocked(id); r != nil && c.appliesLocked(o, r) {
			busy = true
		}
	}
	for _, ref := range releases {
		r := c.recordLocked(ref)
		if !slices.Contains(r.owners, o) {
			r.owners = append(r.owners, o)
			o.records = append(o.records, r)
		}
		if c.releasesLocked(o, r) {
			busy = true
		}
	}
	if !begins {
		return func() {}, busy
	}
	if busy {
		o.run = nil
		return func() {}, true
	}
	for _, r := range o.records {
		if o.run.releases[r] == nil {
			c.endPendingLocked(r, o)
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.run = nil
	}, false
}

// appliesLocked claims an object for a run that applies it, and reports whether another run is deleting it.
func (c *Claims) appliesLocked(o *ownerRecord, r *record) (busy bool) {
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
func (c *Claims) releasesLocked(o *ownerRecord, r *record) (busy bool) {
	if c.handOvers[handOver{o.owner, r.key()}] > 0 {
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
