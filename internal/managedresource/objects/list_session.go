package objects

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ListSession is a complete list of a scope that is reported piece by piece. It keeps no object: each record has the
// number of the latest listing that had it.
//
// A complete list has the latest state when it began. It proves that resource versions were turned back, as by a
// restore of etcd, if it is older than the state that was known before it began, or has an object in an older version
// than a record that it covers, or another object in that very version. Records that contradict the list are
// forgotten, and the objects are read.
type ListSession struct {
	tracker *Tracker
	kind    kind
	inScope func(Ref) bool
	number  uint32
	// latest is the latest resource version of the scope before the list began; version is the list's.
	latest, version       string
	versionsWentBackwards bool
}

// StartListSession begins a list of the objects of a kind for which inScope holds; inScope must not call the tracker.
// It must be called before the list is requested. since is the latest resource version that the scope's watch or last
// list reported.
func (l *Tracker) StartListSession(gk schema.GroupKind, since string, inScope func(Ref) bool) *ListSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listings++
	x := &ListSession{tracker: l, kind: unique.Make(gk), inScope: inScope, number: l.listings, latest: since}
	for _, r := range l.records[x.kind] {
		if (x.latest == "" || newer(r.resourceVersion, x.latest)) && r.authoritativeFor(inScope) {
			x.latest = r.resourceVersion
		}
	}
	return x
}

// At sets the resource version of the list, as soon as its first piece arrives. It reports whether resource versions
// were turned back, so that everything in the scope must be checked.
func (x *ListSession) At(resourceVersion string) (versionsWentBackwards bool) {
	x.version = resourceVersion
	if !newer(x.latest, resourceVersion) {
		return false
	}
	x.versionsWentBackwards = true
	l := x.tracker
	l.update(func(notify *notices) {
		for _, r := range l.records[x.kind] {
			if r.authoritativeFor(x.inScope) {
				r.resetLocked(notify)
			}
		}
	})
	return true
}

// ObservePresent reports an object of the list, and returns the object as it is on record then.
func (x *ListSession) ObservePresent(s Observation) Object {
	l := x.tracker
	l.updateObject(s.ID, func(r *record, notify *notices) {
		if r.authoritativeFor(x.inScope) || x.cannotProveAbsence(r) {
			r.listed = max(r.listed, x.number)
		}
		x.proveLocked(r, s, notify)
		l.seenLocked(r, s, notify)
	})
	return l.Get(s.ID)
}

// proveLocked forgets what is known of an object if the list covers the version on record and has an older version, or
// another object in that version.
func (x *ListSession) proveLocked(r *record, s Observation, notify *notices) {
	if !r.contradicts(s) || newer(r.resourceVersion, x.version) {
		return
	}
	if r.missingFromList && !x.goesByLabel(r) {
		if x.concerns(r) {
			r.resourceVersion = "" // A list that selects by the label reported it as missing.
		}
		return
	}
	x.versionsWentBackwards = true
	r.resetLocked(notify)
}

// goesByLabel reports whether the list has an object only if it has the label.
func (x *ListSession) goesByLabel(r *record) bool {
	return slices.ContainsFunc(r.owners, func(o *ownerRecord) bool {
		return x.inScope(Ref{ID: r.key(), Version: o.version(r).Value()})
	})
}

// cannotProveAbsence reports whether neither this list nor another one of its version proves that an object is absent:
// they select by the label, which an owner in another version does not set. That version need not be served.
func (x *ListSession) cannotProveAbsence(r *record) bool {
	return r.unlabelled && slices.ContainsFunc(r.owners, func(o *ownerRecord) bool {
		return x.inScope(o.ref(r)) && !slices.ContainsFunc(r.owners,
			func(other *ownerRecord) bool { return other.unlabels(r) && other.version(r) == o.version(r) })
	})
}

// End reports that the list was complete: objects in its scope that were not listed are gone. Objects that came into
// the scope during the list, or that a later list had, become stale: it is not known whether this list had them, too.
func (x *ListSession) End() {
	l := x.tracker
	l.update(func(notify *notices) {
		for _, r := range l.records[x.kind] {
			switch {
			case r.listed == x.number:
			case x.cannotProveAbsence(r):
				r.staleLocked(notify)
			case !r.authoritativeFor(x.inScope):
			case r.listed > x.number || r.since >= x.number:
				r.staleLocked(notify)
			case x.goesByLabel(r):
				l.unlistedLocked(r, x.version, notify)
			default:
				l.goneLocked(r, "", x.version, notify)
			}
		}
	})
}

// VersionsWentBackwards reports whether the list so far proves that resource versions were turned back.
func (x *ListSession) VersionsWentBackwards() bool {
	x.tracker.mu.Lock()
	defer x.tracker.mu.Unlock()
	return x.versionsWentBackwards
}

// VersionsWentBackwards reports that resource versions were turned back, as by a restore of etcd: every record may be
// from a history that was undone, and is checked anew. The objects for which except holds were reported since.
func (l *Tracker) VersionsWentBackwards(except func(Ref) bool) {
	l.update(func(notify *notices) {
		for _, byName := range l.records {
			for _, r := range byName {
				if r.resourceVersion != "" && !r.authoritativeFor(except) {
					r.resetLocked(notify)
				}
			}
		}
	})
}

// resetLocked forgets the version of a record, and marks the record as stale.
func (r *record) resetLocked(notify *notices) {
	r.resourceVersion, r.digest = "", 0
	r.era++
	r.changedLocked(notify)
}
