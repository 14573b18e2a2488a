package objects

import (
	"slices"
)

// run has the claims of a ManagedResource's run on its objects. It applies some objects, and releases others, which
// it deletes, hands over or leaves. A ManagedResource that releases an object does not keep it: otherwise two that
// release it at the same time would each leave it to the other. A ManagedResource that applies an object keeps it,
// even before its inventory has the object.
//
// Invariant: no object is deleted that another run claims at any time between the decision and the response to the
// deletion. A run claims the objects that it releases before it looks up their other owners, and the objects that it
// applies before it writes its inventory. The second of two runs detects the first: the deletion is refused if
// another run applies the object, and a run that claims an object during its deletion is busy, ends, and is retried.
// An object is also not handed over to a ManagedResource whose run releases it: the hand-over is refused, or that run
// is busy. No run waits for another one.
type run struct {
	applies  map[*record]struct{}
	releases map[*record]*release
}

// release is a run's claim on an object that it releases.
type release struct {
	// wanted is true if another run has claimed the object to apply it, before or after this claim.
	wanted bool
	// deleting counts deletions in progress, because two entries may be about one object.
	deleting int
}

// Claims is the part of the Tracker with the claims of runs to apply, release or delete objects.
type Claims struct {
	*table
	// handOvers counts the hand-overs in progress.
	handOvers map[handOver]int
}

// handOver is a hand-over of an object to a ManagedResource.
type handOver struct {
	to  Owner
	key ID
}

// Releases reports whether a run in progress of a ManagedResource deletes, hands over or leaves an object.
func (c *Claims) Releases(owner Owner, id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owners[owner].releases(c.findLocked(id)) != nil
}

// Claim claims objects for a run of a ManagedResource: the tracked objects that it applies, and the objects that it
// releases. The first call begins the run, and returns the function that ends it. It claims nothing and returns true
// if the run is busy: another run is deleting an object that this run applies, or is handing over an object that this
// run releases. A later call adds objects. When a run begins, the pending deletions of objects that it does not
// release end.
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

// appliesLocked claims an object to be applied, and reports whether another run is deleting it.
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

// releasesLocked claims an object to be released, and reports whether another run is handing it over to the
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

// releases returns the claim to release an object of a run in progress; nil if there is none.
func (o *ownerRecord) releases(r *record) *release {
	if o == nil || o.run == nil || r == nil {
		return nil
	}
	return o.run.releases[r]
}
