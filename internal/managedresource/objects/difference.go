package objects

// Audited is the result of an audit: the differences between a list and the records.
type Audited struct {
	// Differing are the objects whose records differ from the list, including those that the list lacks, as
	// observations for Observe.
	Differing []Observation
	// Unlabelled are the existing objects of the scope without the label, which the list therefore lacks.
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

// compareAbsentLocked finds the tracked, existing objects that the list lacks, after all objects of the list were
// compared.
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

// isBehind reports whether a list is newer than the record: it has a later version of the object, or lacks it. If the
// record is missing and the list has the object in the same version, the object exists.
func (r *record) isBehind(s Observation) bool {
	if s.Gone {
		return r.state == present && !newer(r.resourceVersion, s.ResourceVersion)
	}
	return r.state == unseen || newer(s.ResourceVersion, r.resourceVersion) || r.state == missing &&
		s.ResourceVersion == r.resourceVersion
}
