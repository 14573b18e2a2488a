package objects

import "slices"

// Difference is what a list says of an object and the tracker does not know, or knows otherwise.
type Difference struct {
	Observation
	// Present is false if the list does not have the object.
	Present bool
}

// Compare reports an object of a list that is to change nothing but what it proves to be of a time that never was. It
// returns what of it is not known yet, nil if all is, and whether any ManagedResource has the object.
func (x *ListSession) Compare(s Observation) (missing *Difference, tracked bool) {
	x.tracker.update(func(notify *notices) { missing, tracked = x.compareLocked(s, notify) })
	return missing, tracked
}

func (x *ListSession) compareLocked(s Observation, notify *notices) (*Difference, bool) {
	r := x.tracker.findLocked(s.Key)
	if r == nil {
		return nil, false
	}
	if !x.concerns(r) {
		return nil, true
	}
	r.listed = max(r.listed, x.number)
	x.proveLocked(r, s, notify)
	if r.isBehind(Difference{s, true}) {
		return &Difference{s, true}, true
	}
	return nil, true
}

// concerns reports whether an object is in the scope for one of those who have it. That the list has it not proves less:
// see record.tells.
func (x *ListSession) concerns(r *record) bool {
	return slices.ContainsFunc(r.owners, func(o *ownerRecord) bool { return x.inScope(o.ref(r)) })
}

// Absent returns, after all objects of the list were compared, those that are known to be there and that it does not
// have. Objects that it passes by are doubted.
func (x *ListSession) Absent() []Difference {
	l := x.tracker
	var absent []Difference
	l.update(func(notify *notices) {
		for _, r := range l.records[x.kind] {
			if r.listed < x.number && x.cannotProveAbsence(r) {
				r.staleLocked(notify)
				continue
			}
			gone := Difference{Observation{Key: r.key(), ResourceVersion: x.version}, false}
			if r.listed < x.number && r.since < x.number && r.authoritativeFor(x.inScope) && r.isBehind(gone) {
				absent = append(absent, gone)
			}
		}
	})
	return absent
}

// CompleteDifference takes over a difference if it is still one, and reports whether it was.
func (l *Tracker) CompleteDifference(d Difference) (behind bool) {
	l.updateObject(d.Key, func(r *record, notify *notices) {
		behind = r.isBehind(d)
		switch {
		case behind && d.Present:
			l.seenLocked(r, d.Observation, notify)
		case behind:
			l.unlistedLocked(r, d.ResourceVersion, notify)
		}
	})
	return behind
}

// isBehind reports whether the list knows more: the object in a later version than the latest that was told, or not at
// all. An object that is on record as missing as of the version in which the list has it is there.
func (r *record) isBehind(d Difference) bool {
	if !d.Present {
		return r.state == present && !newer(r.resourceVersion, d.ResourceVersion)
	}
	return r.state == unseen || newer(d.ResourceVersion, r.resourceVersion) || r.state == missing && d.ResourceVersion == r.resourceVersion
}
