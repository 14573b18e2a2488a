package objects

import (
	"slices"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

// Owner is a ManagedResource.
type Owner = types.NamespacedName

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
	// Verdict is the health of the object, and Version the version of its kind in which it was read (MRH-8); nil if
	// the observation has no health.
	Verdict *healthcheck.Verdict
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

// Tracker is safe for concurrent use.
type Tracker struct {
	mu       sync.Mutex
	records  map[kind]map[name]*record
	owners   map[Owner]*ownerRecord
	listings uint32
	// rares are the records that have a rare part.
	rares map[*record]struct{}
	// RepairDelay is managedResource.driftRepairDelay. It is set before the first drift.
	RepairDelay time.Duration
	// handOvers counts the hand-overs that are under way.
	handOvers map[handOver]int

	subscriber Subscriber
}

// New returns an empty tracker.
func New() *Tracker {
	return &Tracker{
		records:    map[kind]map[name]*record{},
		owners:     map[Owner]*ownerRecord{},
		rares:      map[*record]struct{}{},
		handOvers:  map[handOver]int{},
		subscriber: Subscriber{Drift: func(Owner, ID) {}, Verdict: func(Owner) {}, Restored: func(string) {}},
	}
}

// Subscriber has the callbacks for changes. They are called outside the lock of the Tracker,
// but maybe under a lock of the target's watches: they must not call these.
type Subscriber struct {
	// Drift is called when an object of a ManagedResource may have drifted, Verdict when the health of one changed.
	Drift   func(Owner, ID)
	Verdict func(Owner)
	// Restored is called with the proof when an answer shows that the store was restored to an earlier state.
	Restored func(proof string)
}

// Subscribe sets the callbacks that a subscriber has. Earlier reports are not repeated.
func (l *Tracker) Subscribe(s Subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Drift != nil {
		l.subscriber.Drift = s.Drift
	}
	if s.Verdict != nil {
		l.subscriber.Verdict = s.Verdict
	}
	if s.Restored != nil {
		l.subscriber.Restored = s.Restored
	}
}

// Track sets the objects of a ManagedResource; its former objects are forgotten unless another ManagedResource has
// them.
func (l *Tracker) Track(owner Owner, refs []Ref) {
	l.update(func(notify *notices) { l.trackLocked(owner, refs, notify) })
}

func (l *Tracker) trackLocked(owner Owner, refs []Ref, notify *notices) {
	o := l.owners[owner]
	if o == nil {
		if len(refs) == 0 {
			return
		}
		o = &ownerRecord{owner: owner, outOfSync: map[*record]struct{}{}}
		l.owners[owner] = o
	}
	before := *o
	wanted := make(map[*record]struct{}, len(refs))
	o.records, o.versions = make([]*record, 0, len(refs)), nil
	for _, ref := range refs {
		r := l.recordLocked(ref)
		if _, twice := wanted[r]; twice {
			continue // The first version is the manifest's, before the inventory's.
		}
		wanted[r] = struct{}{}
		l.addLocked(o, r, versionOf(ref), &before, notify)
	}
	for _, r := range before.records {
		if _, kept := wanted[r]; !kept {
			l.dropOwnerLocked(r, o, notify)
		}
	}
	if len(refs) == 0 {
		delete(l.owners, owner)
	}
}

// addLocked adds an object to a ManagedResource; before has the objects that it had until now.
func (l *Tracker) addLocked(o *ownerRecord, r *record, version unique.Handle[string], before *ownerRecord,
	notify *notices) {
	o.records = append(o.records, r)
	if version != r.version {
		o.versions = with(o.versions, r, version)
	}
	if slices.Contains(r.owners, o) {
		if before.version(r) != o.version(r) {
			l.listsChangedLocked(r, notify)
		}
		return
	}
	r.owners = append(r.owners, o)
	if r.sync == outOfSync {
		o.outOfSync[r] = struct{}{}
	}
}

// recordLocked finds or makes the record of a reference.
func (l *Tracker) recordLocked(ref Ref) *record {
	k, n := split(ref.ID)
	byName := l.records[k]
	if byName == nil {
		byName = map[name]*record{}
		l.records[k] = byName
	}
	r := byName[n]
	if r == nil {
		r = &record{recordID: recordID{k, n}, coverage: coverage{version: versionOf(ref), since: l.listings}}
		byName[n] = r
	}
	return r
}

func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

func (l *Tracker) findLocked(key ID) *record {
	k, n := split(key)
	return l.records[k][n]
}

// dropOwnerLocked removes an owner from an object. If it may have been the writer, the others must check the object.
func (l *Tracker) dropOwnerLocked(r *record, o *ownerRecord, notify *notices) {
	r.checkedLocked(o)
	mayKeep := !r.hasWriter || r.owners[0] == o
	r.owners = slices.DeleteFunc(r.owners, func(other *ownerRecord) bool { return other == o })
	l.claimEndsLocked(r, o)
	if len(r.owners) > 0 {
		if mayKeep {
			r.hasWriter = false
			r.outOfSyncLocked(notify)
		}
		return
	}
	delete(l.rares, r)
	delete(l.records[r.kind], r.name)
	if len(l.records[r.kind]) == 0 {
		delete(l.records, r.kind)
	}
}

// MarkInSync reports the result of a run for an object: it was found, or made, in sync, so that deletions that runs had
// sent before are over. If a later version was seen that may differ, the object is out of sync, and its ManagedResource
// is notified. If another ManagedResource keeps the object, its owner need not check it until it changes; without a
// resource version the object is missing then.
func (l *Tracker) MarkInSync(owner Owner, s Observation) {
	l.updateObject(s.ID, func(r *record, notify *notices) {
		o := l.owners[owner]
		if s.Kept {
			l.keptLocked(r, o, s, notify)
			return
		}
		r.ownLocked(o, s)
		if r.rare != nil && !s.Terminating {
			r.rare.deleting = nil
			l.completeRareLocked(r)
		}
		if !s.Noop.Until.IsZero() {
			l.rareLocked(r).noop = s.Noop
		}
		l.verifiedLocked(r, o, s, notify)
	})
}

func (l *Tracker) verifiedLocked(r *record, o *ownerRecord, s Observation, notify *notices) {
	if s.CreateOnly && len(r.owners) > 1 {
		l.keptLocked(r, o, s, notify) // Another owner compares it.
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
	l.setHoldLocked(r, s.Hold)
	r.state, r.digest, r.desired, r.sync = present, s.Digest, s.Desired, verified
	r.missingFromList, r.unlabelledLive, r.unreported = false, s.Unlabelled, false
	if s.CreateOnly {
		o = nil // It repairs nothing.
	}
	r.setWriterLocked(o)
	l.notePartialLocked(r, s.RetryPartial)
	for _, o := range r.owners {
		delete(o.outOfSync, r)
	}
	if changed {
		notify.healthOf(r)
	}
}

func (l *Tracker) keptLocked(r *record, o *ownerRecord, s Observation, notify *notices) {
	found := s.ResourceVersion != ""
	if found {
		l.seenLocked(r, s, notify)
	}
	isOutdated := found && r.outdates(s) || !found && !r.is(s.Since)
	if o != nil && !isOutdated && s.Since.Requested == r.requested {
		r.checkedLocked(o)
	}
}

// Observe reports an object that a watch, or a read without a comparison, found or did not find. The result of an audit
// counts only if the record still differs from it; Observe returns false if not.
func (l *Tracker) Observe(s Observation) (counts bool) {
	l.updateObject(s.ID, func(r *record, notify *notices) {
		counts = !s.Listed || r.isBehind(s)
		switch {
		case !counts:
		case s.Listed && s.Gone:
			l.unlistedLocked(r, s.ResourceVersion, notify)
		case !s.Gone:
			l.seenLocked(r, s, notify)
		case s.ResourceVersion != "" || r.is(s.Since):
			l.goneLocked(r, s.UID, s.ResourceVersion, notify)
		}
	})
	return counts
}

// seenLocked takes an observation without a comparison. Each of its conditions reads the record before the next line
// changes it, so that parts of it could not stand alone.
func (l *Tracker) seenLocked(r *record, s Observation, notify *notices) {
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
	switch ended := l.setHoldLocked(r, s.Hold); {
	case known && ended:
		l.holdEndedLocked(r, notify)
	case known && !same && (r.sync != outOfSync || r.retryPartial):
		r.changedLocked(notify)
	}
	if changed {
		notify.healthOf(r)
	}
}

// unlistedLocked is goneLocked for an object that a complete list by label of a resource version does not have.
func (l *Tracker) unlistedLocked(r *record, resourceVersion string, notify *notices) {
	l.goneLocked(r, "", resourceVersion, notify)
	r.missingFromList = r.missingFromList || r.state == missing && r.resourceVersion == resourceVersion
}

// goneLocked takes the report that an object is gone as of a resource version; later observations count more.
func (l *Tracker) goneLocked(r *record, uid types.UID, resourceVersion string, notify *notices) {
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
	l.setHoldLocked(r, 0)
	if was == present {
		r.changedLocked(notify)
	}
	notify.healthOf(r)
}

// MarkOutOfSync marks an object to be checked, for example when an autoscaler came or went. A run that has begun
// already does not know of the change.
func (l *Tracker) MarkOutOfSync(key ID) {
	l.updateObject(key, func(r *record, notify *notices) { r.markLocked(notify) })
}

// KindEnded reports that a kind is not served any more. No watch reports the end of its objects, so that the
// health of the ManagedResources that have some of a scope is assessed anew.
func (l *Tracker) KindEnded(gk schema.GroupKind, inScope func(Ref) bool) {
	l.update(func(notify *notices) {
		for _, r := range l.records[unique.Make(gk)] {
			if r.state == present && r.authoritativeFor(inScope) {
				notify.healthOf(r)
			}
		}
	})
}

// update changes records under the lock, and notifies subscribers once the lock is free.
func (l *Tracker) update(change func(notify *notices)) {
	var notify notices
	func() {
		l.mu.Lock()
		defer l.mu.Unlock() // Also after a panic, which ends one run only.
		change(&notify)
	}()
	notify.send(l)
}

// updateObject is update for one object, if any ManagedResource has it.
func (l *Tracker) updateObject(key ID, change func(r *record, notify *notices)) {
	l.update(func(notify *notices) {
		if r := l.findLocked(key); r != nil {
			change(r, notify)
		}
	})
}

// Progress is the state of the objects of a ManagedResource.
type Progress struct {
	// Refs are the objects, OutOfSync those that must be checked.
	Refs      []Ref
	OutOfSync []ID
	// AllKnown is true if a read or a watch has looked for every object, so that the health can be assessed; false without
	// tracked objects.
	AllKnown bool
}

// Progress returns the state of the objects of a ManagedResource.
func (l *Tracker) Progress(owner Owner) (progress Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return progress
	}
	progress.Refs, progress.AllKnown = make([]Ref, 0, len(o.records)), true
	for _, r := range o.records {
		progress.Refs = append(progress.Refs, o.ref(r))
		progress.AllKnown = progress.AllKnown && r.state != unseen
	}
	for r := range o.outOfSync {
		progress.OutOfSync = append(progress.OutOfSync, r.key())
	}
	return progress
}

// notices are the notifications that subscribers receive once the lock is free.
type notices struct {
	drift []drift
	// health are the ManagedResources of objects whose health changed.
	health []Owner
	// restored is the proof of a restore; empty for none.
	restored string
}

type drift struct {
	owner Owner
	key   ID
}

func (n *notices) healthOf(r *record) {
	for _, o := range r.owners {
		n.health = append(n.health, o.owner)
	}
}

func (n *notices) send(l *Tracker) {
	if len(n.drift) == 0 && len(n.health) == 0 && n.restored == "" {
		return
	}
	l.mu.Lock()
	subscriber := l.subscriber
	l.mu.Unlock()
	for _, d := range n.drift {
		subscriber.Drift(d.owner, d.key)
	}
	for _, owner := range n.health {
		subscriber.Verdict(owner)
	}
	if n.restored != "" {
		subscriber.Restored(n.restored)
	}
}
