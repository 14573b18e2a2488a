package objects

import (
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Observations is the part of the Tracker that takes reports about objects, and returns what is known of them.
type Observations struct{ *table }

// Observation is an object as a watch or the answer to a request shows it.
type Observation struct {
	ID              ID
	UID             types.UID
	ResourceVersion string
	// Since is the tracked revision when the request was sent; zero in reports of lists and watches. An answer has
	// the latest state, so that an answer older than a record that has not changed since proves a restore (MRB-47).
	Since Revision
	// Digest is a digest of all that decides about drift; zero means that only equal resource versions prove sameness.
	Digest uint64
	// Gone is true if the object does not exist; UID is empty then, or the UID of the deleted object. Without a resource
	// version it is the answer to a read, which does not show when it was true: any report after Since counts more.
	Gone bool
	// Listed is true if an audit found that the record differs from the list, some time ago.
	Listed bool
	// Terminating is true from the moment at which the deletion was accepted.
	Terminating bool
	// Unlabelled is true if the object lacks the managed-by label.
	Unlabelled bool
	// Hold is a digest of the annotations that exempt the object from repair; zero if there are none.
	Hold uint32
	// Health is the health of the object, and Version the version of its kind in which it was read (MRH-8); nil if
	// the observation has no health.
	Health  *healthcheck.Status
	Version string

	// The fields below are the result of a run. Only MarkInSync needs them.

	// Desired is a digest of the desired state that the object was compared with.
	Desired uint64
	// CreateOnly is true if the ManagedResource creates the object only once, and does not repair it; Created is true if
	// the object was created for the ManagedResource.
	CreateOnly, Created bool
	// Kept is true if another ManagedResource owns the object.
	Kept bool
	// RetryPartial is the time to write the object once more, if the API server is known to have kept only a part of
	// the write; else zero.
	RetryPartial time.Time
	// Noop is the write of this run, if it changed nothing; else zero.
	Noop NoopWrite
}

// MarkInSync reports the result of a run for an object: it was found, or made, in sync, so that deletions that runs had
// sent before are over. If a later version was seen that may differ, the object is out of sync, and its ManagedResource
// is notified. If another ManagedResource keeps the object, its owner need not check it until it changes; without a
// resource version the object is missing then.
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
		r.resourceVersion = "" // The answer to a request that was sent after a list had missed the object: it exists.
	}
	if r.outdates(s) || s.Since.Requested != r.requested {
		if r.sync == verified && r.desired == s.Desired {
			return // A later version has been compared with the same since.
		}
		if !ordered(r.resourceVersion, s.ResourceVersion) {
			// It is not known which version is the later one. A second read that finds the same version decides.
			r.resourceVersion, r.state, r.missingFromList = s.ResourceVersion, present, false
			r.uid = s.UID
		}
		r.changedLocked(notify)
		return
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
		o = nil // It repairs nothing.
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
	if o != nil && !isOutdated && s.Since.Requested == r.requested {
		r.checkedLocked(o)
	}
}

// Observe reports an object that a watch, or a read without a comparison, found or did not find. The result of an audit
// counts only if the record still differs from it; Observe returns false if not.
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

// seenLocked takes an observation without a comparison. Each of its conditions reads the record before the next line
// changes it, so that parts of it could not stand alone.
func (obs *Observations) seenLocked(r *record, s Observation, notify *notices) {
	if r.is(s.Since) && !r.missingFromList && r.restoredLocked(s, notify) {
		return
	}
	if r.missingFromList && s.Since != (Revision{}) && r.is(s.Since) {
		r.resourceVersion = "" // The answer to a request that was sent after a list had missed the object: it exists.
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

// unlistedLocked is goneLocked for an object that a complete list by label of a resource version does not have.
func (obs *Observations) unlistedLocked(r *record, resourceVersion string, notify *notices) {
	obs.goneLocked(r, "", resourceVersion, notify)
	r.missingFromList = r.missingFromList || r.state == missing && r.resourceVersion == resourceVersion
}

// goneLocked takes the report that an object is gone as of a resource version; later observations count more.
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

// MarkOutOfSync marks an object to be checked, for example when an autoscaler came or went. A run that has begun
// already does not know of the change.
func (obs *Observations) MarkOutOfSync(key ID) {
	obs.updateObject(key, func(r *record, notify *notices) { r.markLocked(notify) })
}

// KindEnded reports that a kind is not served any more. No watch reports the end of its objects, so that the
// health of the ManagedResources that have some of a scope is assessed anew.
func (obs *Observations) KindEnded(gk schema.GroupKind, inScope func(Ref) bool) {
	obs.update(func(notify *notices) {
		for _, r := range obs.records[unique.Make(gk)] {
			if r.state == present && r.authoritativeFor(inScope) {
				notify.healthOf(r)
			}
		}
	})
}
