package objects

import (
	"fmt"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ListPurpose is the purpose of a list.
type ListPurpose uint8

const (
	// Report updates the records from the list.
	Report ListPurpose = iota
	// Audit only compares the list with the records, to find changes that a watch has missed.
	Audit
)

// ListSession is a complete list of a scope, reported page by page. It stores no objects: each record has the number
// of the latest list that had its object.
//
// A complete list has the latest state when it began. The store was therefore restored (MRB-47) if the list is older
// than a state that was known before it began, if it has an object in an older version than a record that it covers,
// or if it has another object in the same version.
type ListSession struct {
	observations *Observations
	kind         kind
	inScope      func(Ref) bool
	number       uint32
	// latest is the latest resource version of the scope before the list began; version is the resource version of
	// the list.
	latest, version string
	purpose         ListPurpose
	audited         Audited
}

// StartListSession begins a list of the objects of a kind for which inScope holds; inScope must not call the tracker.
// It must be called before the list is requested. since is the latest resource version that a watch or a list of the
// scope reported.
func (obs *Observations) StartListSession(purpose ListPurpose, gk schema.GroupKind, since string,
	inScope func(Ref) bool) *ListSession {
	obs.mu.Lock()
	defer obs.mu.Unlock()
	obs.listings++
	x := &ListSession{observations: obs, purpose: purpose, kind: unique.Make(gk), inScope: inScope, number: obs.listings,
		latest: since}
	for _, r := range obs.records[x.kind] {
		if (x.latest == "" || newer(r.resourceVersion, x.latest)) && r.authoritativeFor(inScope) {
			x.latest = r.resourceVersion
		}
	}
	return x
}

// At sets the resource version of the list, as soon as its first page arrives. It detects a restore if the version is
// older than expected.
func (x *ListSession) At(resourceVersion string) {
	x.version = resourceVersion
	if !newer(x.latest, resourceVersion) {
		return
	}
	obs := x.observations
	obs.update(func(notify *notices) {
		notify.restored = fmt.Sprintf("%s were listed in version %s, and in version %s before", x.kind.Value(),
			resourceVersion, x.latest)
		for _, r := range obs.records[x.kind] {
			if r.authoritativeFor(x.inScope) {
				r.forgetLocked(notify)
			}
		}
	})
}

// Observe reports or compares an object of the list, and returns the tracked object.
func (x *ListSession) Observe(s Observation) Object {
	obs := x.observations
	obs.updateObject(s.ID, func(r *record, notify *notices) {
		if x.purpose == Audit {
			x.compareLocked(r, s, notify)
			return
		}
		if r.authoritativeFor(x.inScope) {
			r.listed = max(r.listed, x.number)
		}
		x.checkLocked(r, s, notify)
		obs.seenLocked(r, s, notify)
	})
	return obs.Get(s.ID)
}

// checkLocked detects a restore: it compares the version of a listed object with the recorded one, if the list covers
// it.
func (x *ListSession) checkLocked(r *record, s Observation, notify *notices) {
	if newer(r.resourceVersion, x.version) {
		return
	}
	if r.missingFromList && !r.isIn(x.inScope) {
		return
	}
	r.restoredLocked(s, notify)
}

// End reports that the list is complete: objects in its scope that were not listed do not exist, unless they were read
// or written in a later version, after which the watch that follows the list reports every change. Objects that entered
// the scope during the list, or that a later list had, become out of sync, because it is unknown whether this list
// had them. The end of an audit only returns its result.
func (x *ListSession) End() Audited {
	obs := x.observations
	obs.update(func(notify *notices) {
		if x.purpose == Audit {
			x.compareAbsentLocked()
			return
		}
		for _, r := range obs.records[x.kind] {
			switch {
			case r.listed == x.number || newer(r.resourceVersion, x.version):
			case !r.authoritativeFor(x.inScope):
			case r.listed > x.number || r.since >= x.number:
				r.mayBeGoneLocked(notify)
				if r.state == unseen {
					obs.rareLocked(r).unlisted = unlisted{x.version, r.requested}
				}
			default:
				obs.unlistedLocked(r, x.version, notify)
			}
		}
	})
	return x.audited
}
