package objects

// Audited is the result of an audit.
type Audited struct {
	// Differing are the objects that the records do not have in the listed state, also those that the list does not
	// have, as observations for Observe.
	Differing []Observation
	// Unlabelled are the objects of the scope that are present without the label, so that the list does not have them.
	Unlabelled []ID
}

// compareLocked compares a listed object with its record.
func (x *ListSession) compareLocked(r *record, s Observation, notify *notices) {
	if !r.isIn(x.inScope) {
		return
	}
	r.listed = max(r.listed, x.number)
	x.checkLocked(r, s, notify)
	if r.isBehind(s) {
		s.Listed = true
		x.audited.Differing = append(x.audited.Differing, s)
	}
}

// compareAbsentLocked finds, after all objects of the list were compared, the tracked objects that are present and
// that the list does not have.
func (x *ListSession) compareAbsentLocked() {
	for _, r := range x.observations.records[x.kind] {
		if r.unlabelledLive && r.isIn(x.inScope) {
			x.audited.Unlabelled = append(x.audited.Unlabelled, r.key())
		}
		gone := Observation{ID: r.key(), ResourceVersion: x.version, Gone: true, Listed: true}
		if r.listed < x.number && r.since < x.number && r.authoritativeFor(x.inScope) && r.isBehind(gone) {
			x.audited.Differing = append(x.audited.Differing, gone)
		}
	}
}

// isBehind reports whether a list knows more than the record: a later version of the object, or its absence. If the
// record is missing at the version in which the list has the object, the object exists.
func (r *record) isBehind(s Observation) bool {
	if s.Gone {
		return r.state == present && !newer(r.resourceVersion, s.ResourceVersion)
	}
	return r.state == unseen || newer(s.ResourceVersion, r.resourceVersion) || r.state == missing &&
		s.ResourceVersion == r.resourceVersion
}
