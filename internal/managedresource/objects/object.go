package objects

import (
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Revision identifies the state of a record, to detect later reports.
type Revision struct {
	resourceVersion string
	uid             types.UID
	state           state
	// Requested counts the requested checks for reasons that no version of the object shows.
	Requested uint16
}

// Object is the tracked state of an object, as returned by Get.
type Object struct {
	// Tracked is true if a ManagedResource has the object. Writer is the ManagedResource that last verified it; zero
	// if unknown.
	Tracked bool
	Writer  Owner
	// Known is true once a read or a watch has looked up the object; Present is true if it existed then.
	Known, Present bool
	// MissingFromList is true if the object is not present because a list by label lacked it: it may exist without
	// the label.
	MissingFromList bool
	// UnlabelledLive is true if the object lacks the managed-by label, so that no list or watch reports its changes.
	UnlabelledLive bool
	// OutOfSync is true if the object must be checked. InSync is true if it was found in sync and has not changed
	// since.
	OutOfSync, InSync bool
	// RetryPartial is true if the object is out of sync only because the API server kept a part of the last write,
	// and may keep more now.
	RetryPartial bool
	// Terminating is true if the object is being deleted. The end of the deletion is reported as drift.
	Terminating     bool
	UID             types.UID
	ResourceVersion string
	// Digest is a digest of everything that decides about drift; zero if unknown.
	Digest uint64
	// Desired is a digest of the desired state with which the object was last compared.
	Desired uint64
	// Created is the UID of the object that this process created and has not given up. CreatedFor is the
	// ManagedResource for which it was created, or that has taken it over since.
	Created    types.UID
	CreatedFor Owner
	// BeingDeleted is true if a run has sent a deletion of the object, or has found it terminating, and no run has
	// applied the object since.
	BeingDeleted bool
	// Noop is a write that is known to change nothing.
	Noop NoopWrite
	// Assessed is true if the health of the object in the requested version is known; Health is this health.
	Assessed bool
	Health   healthcheck.Status
	// Revision is the Since of observations by requests that are sent now.
	Revision Revision
}

// GoneSince reports whether an object was found deleted later than at a resource version. An object that left the
// filter of a watch looks the same, so that callers must not use GoneSince for an object whose deletion takes time.
func (f Object) GoneSince(resourceVersion string) bool {
	return f.Known && !f.Present && newer(f.ResourceVersion, resourceVersion)
}

// Get returns a tracked object, with its health in the given version of its kind, if any: the health may differ
// between versions (MRH-8).
func (obs *Observations) Get(key ID, version ...string) Object {
	obs.mu.Lock()
	defer obs.mu.Unlock()
	r := obs.findLocked(key)
	if r == nil {
		return Object{}
	}
	o := r.snapshot()
	for _, v := range version {
		o.Health, o.Assessed = r.healthIn(unique.Make(v))
	}
	return o
}

func (r *record) snapshot() Object {
	o := Object{
		Tracked: true, Known: r.state != unseen, Present: r.state == present,
		MissingFromList: r.missingFromList, UnlabelledLive: r.unlabelledLive,
		OutOfSync: r.sync == outOfSync, InSync: r.sync == verified, RetryPartial: r.retryPartial,
		Terminating: r.terminating, UID: r.uid, ResourceVersion: r.resourceVersion, Digest: r.digest,
		Desired: r.desired, Revision: r.revision(),
	}
	if writer := r.writer(); writer != nil {
		o.Writer = writer.owner
	}
	if r.creation != nil && !r.creation.givenUp {
		o.Created = r.creation.uid
		if r.creation.owner != nil {
			o.CreatedFor = r.creation.owner.owner
		}
	}
	if r.rare != nil {
		o.BeingDeleted, o.Noop = len(r.rare.deleting) > 0, r.rare.noop
	}
	return o
}
