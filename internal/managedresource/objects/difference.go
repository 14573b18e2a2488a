package objects

// Difference is a disagreement between a list and the tracker about one object.
type Difference struct {
	Observation
	// Present is false if the list does not have the object.
	Present bool
}

// Compare compares an object of a list with its record. It returns the difference, nil if there is none, and whether
// any ManagedResource has the object.
func (x *ListSession) Compare(s Observation) (missing *Difference, tracked bool) {
	x.tracker.update(func(notify *notices) { missing, tracked = x.compareLocked(s, notify) })
	return missing, tracked
}

func (x *ListSession) compareLocked(s Observation, notify *notices) (*Difference, bool) {
	r := x.tracker.findLocked(s.ID)
	if r == nil {
		return nil, false
	}
	if !r.isIn(x.inScope) {
		return nil, true
	}
	r.listed = max(r.listed, x.number)
	x.checkLocked(r, s, notify)
	if r.isBehind(Difference{s, true}) {
		return &Difference{s, true}, true
	}
	return nil, true
}

// Absent returns, after all objects of the list were compared, the objects that are present on record and absent from
// the list.
func (x *ListSession) Absent() []Difference {
	l := x.tracker
	var absent []Difference
	l.update(func(*notices) {
		for _, r := range l.records[x.kind] {
			gone := Difference{Observation{ID: r.key(), ResourceVersion: x.version}, false}
			if r.listed < x.number && r.since < x.number && r.authoritativeFor(x.inScope) && r.isBehind(gone) {
				absent = append(absent, gone)
			}
		}
	})
	return absent
}

// CompleteDifference applies a difference if it still is one, and reports whether it was.
func (l *Tracker) CompleteDifference(d Difference) (behind bool) {
	l.updateObject(d.ID, func(r *record, notify *notices) {
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

// isBehind reports whether the list knows more than the record: a later version of the object, or its absence. If the
// record is missing at the version in which the list has the object, the object exists.
func (r *record) isBehind(d Difference) bool {
	if !d.Present {
		return r.state == present && !newer(r.resourceVersion, d.ResourceVersion)
	}
	return r.state == unseen || newer(d.ResourceVersion, r.resourceVersion) || r.state == missing &&
		d.ResourceVersion == r.resourceVersion
}
