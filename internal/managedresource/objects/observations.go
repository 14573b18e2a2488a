package objects

import (
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Observations is the part of the Tracker that records reports about objects and returns their tracked state.
type Observations struct{ *table }

// Observation is an object as reported by a watch or by the response to a request.
type Observation struct {
	ID              ID
	UID             types.UID
	ResourceVersion string
	// Since is the tracked revision when the request was sent; zero in reports of lists and watches. A response has
	// the latest state: if it is older than a record that has not changed since, the store was restored (MRB-47).
	Since Revision
	// Digest is a digest of everything that decides about drift; zero means that only the resource version can prove
	// equality.
	Digest uint64
	// Gone is true if the object does not exist; UID is then empty, or the UID of the deleted object. Without a
	// resource version, it is the response to a read, which has no time: any report after Since takes precedence.
	Gone bool
	// Listed is true if an earlier audit found that the record differs from the list.
	Listed bool
	// Terminating is true if the object is being deleted.
	Terminating bool
	// Unlabelled is true if the object lacks the managed-by label.
	Unlabelled bool
	// Hold is a digest of the annotations that exempt the object from repair; zero if there are none.
	Hold uint32
	// Health is the health of the object, nil if unknown; Version is the version of its kind in which it was read
	// (MRH-8).
	Health  *healthcheck.Status
	Version string

	// The fields below are results of a run, which only MarkInSync uses.

	// Desired is a digest of the desired state with which the object was compared.
	Desired uint64
	// CreateOnly is true if the ManagedResource creates the object only once, and does not repair it; Created is true if
	// the object was created for the ManagedResource.
	CreateOnly, Created bool
	// Kept is true if another ManagedResource owns the object.
	Kept bool
	// RetryPartial is the time to write the object again, if the API server kept only a part of the write; else zero.
	RetryPartial time.Time
	// Noop is the write of this run, if it changed nothing; else zero.
	Noop NoopWrite
}

// MarkInSync reports that a run found or made an object in sync, which also ends earlier deletions. If a later
// version that may differ was observed, the object is out of sync, and its ManagedResource is notified. If another
// ManagedResource keeps the object, owner need not check it until it changes; without a resource version, the object
// is missing then.
func (obs *Observations) MarkInSync(owner Owner, s Observation) {
	obs.updateObject(s.ID, func(r *record, notify *notices) {
		o := obs.owners[owner]
		if s.Kept {
			obs.keptLocked(r, o, s, notify)
			return
		}
		r.ownLocked(o, s)
		if r.rare != nil && !s.Terminating {
			r.rare.deleting = nil
			obs.completeRareLocked(r)
		}
		if !s.Noop.Until.IsZero() {
			obs.rareLocked(r).noop = s.Noop
		}
		obs.verifiedLocked(r, o, s, notify)
	})
}

func (obs *Observations) verifiedLocked(r *record, o *ownerRecord, s Observation, notify *notices) {
	if s.CreateOnly && len(r.owners) > 1 {
		obs.keptLocked(r, o, s, notify) // Another owner compares it.
		return
	}
	if r.is(s.Since) && !r.missingFromList && r.restoredLocked(s, notify) {
		return
	}
	if r.missingFromList && r.is(s.Since) {
		r.resourceVersion = "" // The response was requested after a list had missed the object: it exists.
	}
	if r.outdates(s) || !r.answersLocked(s) {
		if r.sync == verified && r.desired == s.Desired {
			return // A later version has been compared with the same desired state since.
		}
		if !ordered(r.resourceVersion, s.ResourceVersion) {
			// It is unknown which version is later. A second read that finds the same version decides.
			r.resourceVersion, r.state, r.missingFromList = s.ResourceVersion, present, false
			r.uid = s.UID
		}
		r.changedLocked(notify)
		return
	}
	if r.rare != nil {
		r.rare.unlisted = unlisted{}
		obs.completeRareLocked(r)
	}
	changed := r.state != present
	if !newer(r.resourceVersion, s.ResourceVersion) {
		changed = r.setHealth(s) || changed
		r.resourceVersion, r.terminating = s.ResourceVersion, s.Terminating
	}
	r.uid = s.UID
	obs.setHoldLocked(r, s.Hold)
	r.state, r.digest, r.desired, r.sync = present, s.Digest, s.Desired, verified
	r.missingFromList, r.unlabelledLive, r.unreported = false, s.Unlabelled, false
	if s.CreateOnly {
		o = nil // It repairs nothing, and is therefore no writer.
	}
	r.setWriterLocked(o)
	obs.notePartialLocked(r, s.RetryPartial)
	for _, o := range r.owners {
		delete(o.outOfSync, r)
	}
	if changed {
		notify.healthOf(r)
	}
}

func (obs *Observations) keptLocked(r *record, o *ownerRecord, s Observation, notify *notices) {
	found := s.ResourceVersion != ""
	if found {
		obs.seenLocked(r, s, notify)
	}
	isOutdated := found && r.outdates(s) || !found && !r.is(s.Since)
	if o != nil && !isOutdated && r.answersLocked(s) {
		r.checkedLocked(o)
	}
}

// Observe reports an object that a watch, or a read without a comparison, found or did not find. It ignores the
// result of an audit, and returns false, if the record does not differ from it any more.
func (obs *Observations) Observe(s Observation) (counts bool) {
	obs.updateObject(s.ID, func(r *record, notify *notices) {
		counts = !s.Listed || r.isBehind(s)
		switch {
		case !counts:
		case s.Listed && s.Gone:
			obs.unlistedLocked(r, s.ResourceVersion, notify)
		case !s.Gone:
			obs.seenLocked(r, s, notify)
		case s.ResourceVersion != "" || r.is(s.Since):
			obs.goneLocked(r, s.UID, s.ResourceVersion, notify)
		}
	})
	return counts
}

// seenLocked records an observation without a comparison. It is not split, because each condition reads the record
// before the next line changes it.
func (obs *Observations) seenLocked(r *record, s Observation, notify *notices) {
	if r.is(s.Since) && !r.missingFromList && r.restoredLocked(s, notify) {
		return
	}
	if r.missingFromList && s.Since != (Revision{}) && r.is(s.Since) {
		r.resourceVersion = "" // The response was requested after a list had missed the object: it exists.
	}
	if newer(r.resourceVersion, s.ResourceVersion) {
		return
	}
	changed := r.state != present || r.terminating != s.Terminating
	changed = r.setHealth(s) || changed
	same := r.state == present && r.uid == s.UID &&
		(r.resourceVersion == s.ResourceVersion || (s.Digest != 0 && r.digest == s.Digest))
	known := r.state != unseen
	r.unlabelledLive = s.Unlabelled
	r.uid = s.UID
	r.state, r.resourceVersion, r.digest = present, s.ResourceVersion, s.Digest
	r.terminating, r.missingFromList = s.Terminating, false
	switch ended := obs.setHoldLocked(r, s.Hold); {
	case known && ended:
		obs.holdEndedLocked(r, notify)
	case known && !same && (r.sync != outOfSync || r.retryPartial):
		r.changedLocked(notify)
	}
	if changed {
		notify.healthOf(r)
	}
}

// unlistedLocked calls goneLocked for an object that a complete list by label lacks at a resource version.
func (obs *Observations) unlistedLocked(r *record, resourceVersion string, notify *notices) {
	obs.goneLocked(r, "", resourceVersion, notify)
	r.missingFromList = r.missingFromList || r.state == missing && r.resourceVersion == resourceVersion
}

// goneLocked records that an object does not exist at a resource version; later observations take precedence.
func (obs *Observations) goneLocked(r *record, uid types.UID, resourceVersion string, notify *notices) {
	if newer(r.resourceVersion, resourceVersion) ||
		(uid != "" && r.uid != "" && r.uid != uid && !newer(resourceVersion, r.resourceVersion)) {
		return
	}
	if resourceVersion != "" {
		r.resourceVersion, r.missingFromList = resourceVersion, false
	}
	if r.state == missing {
		return
	}
	was := r.state
	r.state, r.unlabelledLive, r.healths, r.terminating, r.digest = missing, false, nil, false, 0
	r.unverify()
	obs.setHoldLocked(r, 0)
	if was == present {
		r.changedLocked(notify)
	}
	notify.healthOf(r)
}

// MarkOutOfSync marks an object to be checked, for example after an autoscaler was added or removed. A check by a run
// that has already begun does not count.
func (obs *Observations) MarkOutOfSync(key ID) {
	obs.updateObject(key, func(r *record, notify *notices) { r.markLocked(notify) })
}

// KindEnded reports that a kind is not served any more. No watch reports the end of its objects, so that the health
// of the ManagedResources with objects in the scope is assessed again.
func (obs *Observations) KindEnded(gk schema.GroupKind, inScope func(Ref) bool) {
	obs.update(func(notify *notices) {
		for _, r := range obs.records[unique.Make(gk)] {
			if r.state == present && r.authoritativeFor(inScope) {
				notify.healthOf(r)
			}
		}
	})
}
