package objects

import (
	"fmt"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

type state uint8

const (
	unseen  state = iota // not read yet
	present              // existed at the last read
	missing              // did not exist at the last read
)

// syncState is the known sync state of an object.
type syncState uint8

const (
	unverified syncState = iota // unknown, and no check is due
	verified                    // in sync
	outOfSync                   // an owner must check it
)

// kind and name are an ID in a fifth of its size: a hundred thousand objects share few kinds and namespaces.
type kind = unique.Handle[schema.GroupKind]

type name struct {
	namespace unique.Handle[string]
	name      string
}

func split(key ID) (kind, name) {
	return unique.Make(key.GroupKind()), name{unique.Make(key.Namespace), key.Name}
}

func versionOf(ref Ref) unique.Handle[string] { return unique.Make(ref.Version) }

type recordID struct {
	kind kind
	name name
}

func (id recordID) key() ID {
	return ID{id.kind.Value().Group, id.kind.Value().Kind, id.name.namespace.Value(), id.name.name}
}

// record is the tracked state of one object. Invariants whenever the lock is free, which TestModel checks:
//
//   - verified means present, and that the version that was compared with the desired state is the one at
//     resourceVersion, or has the same uid and digest. A verification of an older version verifies nothing.
//   - outOfSync means that the record is in the set of at least one of its owners.
//   - an object that was present, and is reported by other lists and watches than before, because a version has
//     changed, is out of sync.
//   - an object that was present, and was observed to change or to be deleted since it was last compared, is out of
//     sync.
//
// The type of each part documents the other invariants.
type record struct {
	recordID
	observed
	comparison
	coverage
	// creation is nil for an object that this process has neither created nor given up.
	creation *creation
	// rare is nil for most objects.
	rare *rare
	// owners are the ManagedResources that have the object; there is always at least one. All are notified of drift,
	// but only the writer, which verified the object last, repairs it (MRB-16).
	owners []*ownerRecord
}

// observed is the latest reported state of the object. Invariants:
//
//   - resourceVersion is the latest that was reported since the last reset; the other fields describe the object at
//     that version. An older report changes nothing, in any state.
//   - missingFromList means missing, as of the resourceVersion of a list by label: the object may exist without the
//     label, in an older version.
//   - unlabelledLive means present without the label, so that no list or watch reports the object.
//   - healths has the latest reported health of the object for each version in which it was read; its health in other
//     versions is unknown.
type observed struct {
	uid             types.UID
	resourceVersion string
	digest          uint64
	healths         []health

	state           state
	missingFromList bool
	unlabelledLive  bool
	terminating     bool
	// listed is the number of the latest list that had the object.
	listed uint32
}

// comparison is the result of comparing an object with its desired state. Invariants:
//
//   - retryPartial means out of sync only because the write must be retried, although it may change nothing: the API
//     server kept only a part of the object. It ends when a run has checked the object, or when the object changes.
//   - unreported means that the object became out of sync while a ticket to apply it was open, so that no subscriber
//     was notified. Without such a ticket, unreported is false.
type comparison struct {
	// desired is a digest of the desired state with which the object was last compared.
	desired uint64
	// requested counts the requested checks for reasons that no version of the object shows. A check that began
	// before such a request leaves the object out of sync.
	requested    uint16
	sync         syncState
	retryPartial bool
	unreported   bool
	// writes counts the open tickets to apply the object, including those of runs that only read it.
	writes uint8
	// hasWriter is true if the writer is known. It is then the first of the owners.
	hasWriter bool
}

// coverage decides which lists and watches report an object.
type coverage struct {
	// version is the version of the object for its first owner. Other versions are in ownerRecord.versions.
	version unique.Handle[string]
	// since is the number of the latest list that had begun when the object moved to its current lists.
	since uint32
}

type ownerRecord struct {
	owner   Owner
	records []*record
	// outOfSync are the records that the ManagedResource must check.
	outOfSync map[*record]struct{}
	// versions has the versions of objects that differ from the version in their record.
	versions map[*record]unique.Handle[string]
	// run has the claims of the run in progress; nil if there is none.
	run *run
}

// health is the health of an object in a version; a nil status means healthy and rolled out.
type health struct {
	version unique.Handle[string]
	status  *healthcheck.Status
}

// authoritativeFor reports whether lists of a scope prove that an object does not exist: an owner has it in the
// version of the scope, and it has the label.
func (r *record) authoritativeFor(inScope func(Ref) bool) bool {
	return !r.unlabelledLive && r.isIn(inScope)
}

// isIn reports whether one of the owners has the object in a scope.
func (r *record) isIn(inScope func(Ref) bool) bool {
	return slices.ContainsFunc(r.owners, func(o *ownerRecord) bool { return inScope(o.ref(r)) })
}

// ref returns an object in the version of its owner.
func (o *ownerRecord) ref(r *record) Ref {
	return Ref{ID: r.key(), Version: o.version(r).Value()}
}

func (o *ownerRecord) version(r *record) unique.Handle[string] {
	if version, other := o.versions[r]; other {
		return version
	}
	return r.version
}

// listsChangedLocked marks an object as out of sync that other lists will report: if it was deleted while no watch
// ran, neither the previous lists nor the new ones may detect it. Responses to earlier requests leave it out of sync.
func (t *table) listsChangedLocked(r *record, notify *notices) {
	r.since = t.listings
	r.mayBeGoneLocked(notify)
}

// mayBeGoneLocked marks an object as out of sync because it may not exist any more.
func (r *record) mayBeGoneLocked(notify *notices) {
	r.requested++
	if r.state == present && r.sync != outOfSync {
		r.changedLocked(notify)
	}
}

// markLocked marks an object as out of sync for a reason that no version of the object shows.
func (r *record) markLocked(notify *notices) {
	r.requested++
	r.changedLocked(notify)
}

// changedLocked marks an object as out of sync for a reason other than a retry of a write.
func (r *record) changedLocked(notify *notices) {
	r.retryPartial = false
	r.outOfSyncLocked(notify)
}

// outOfSyncLocked marks an object as out of sync, and notifies the ManagedResources that have it.
func (r *record) outOfSyncLocked(notify *notices) {
	r.outOfSyncForAllLocked()
	r.notifyLocked(notify)
}

func (r *record) outOfSyncForAllLocked() {
	r.sync = outOfSync
	for _, o := range r.owners {
		o.outOfSync[r] = struct{}{}
	}
}

// checkedLocked records that an owner need not check an out-of-sync object any more.
func (r *record) checkedLocked(o *ownerRecord) {
	delete(o.outOfSync, r)
	if r.sync == outOfSync && !slices.ContainsFunc(r.owners, r.isOutOfSyncFor) {
		r.sync, r.retryPartial, r.unreported = unverified, false, false
	}
}

// writer returns the owner that repairs the object; nil if unknown.
func (r *record) writer() *ownerRecord {
	if r.hasWriter {
		return r.owners[0]
	}
	return nil
}

// setWriterLocked sets the writer; nil means unknown.
func (r *record) setWriterLocked(o *ownerRecord) {
	i := slices.Index(r.owners, o)
	if r.hasWriter = i >= 0; r.hasWriter {
		r.owners[0], r.owners[i] = r.owners[i], r.owners[0]
	}
}

func (r *record) isOutOfSyncFor(o *ownerRecord) bool {
	_, isOutOfSync := o.outOfSync[r]
	return isOutOfSync
}

// unverify marks a verified object as unverified; an object that is out of sync stays so.
func (c *comparison) unverify() {
	if c.sync == verified {
		c.sync = unverified
	}
}

// void discards the last comparison.
func (c *comparison) void() {
	c.desired = 0
	c.unverify()
}

// notifyLocked notifies the owners that must check an object. While a ticket to apply the object is open, it only
// records that they must be notified when the ticket ends.
func (r *record) notifyLocked(notify *notices) {
	if r.unreported = r.writes > 0; r.unreported {
		return
	}
	for _, o := range r.owners {
		if r.isOutOfSyncFor(o) {
			notify.drift = append(notify.drift, drift{o.owner, r.key()})
		}
	}
}

func (r *record) revision() Revision {
	return Revision{r.resourceVersion, r.uid, r.state, r.requested}
}

// is reports whether the record still has a revision.
func (r *record) is(m Revision) bool {
	m.Requested = r.requested
	return m == r.revision()
}

// restoredLocked reports whether a response that is later than the recorded state proves that the store was restored
// to an earlier state (MRB-47): it has an older version of the object, or another object in the same version. If so,
// the recorded version is forgotten, so that the next observation counts.
func (r *record) restoredLocked(s Observation, notify *notices) bool {
	another := r.state == present && r.resourceVersion != "" && r.resourceVersion == s.ResourceVersion && r.uid != "" &&
		s.UID != "" && r.uid != s.UID
	if !another && !newer(r.resourceVersion, s.ResourceVersion) {
		return false
	}
	notify.restored = fmt.Sprintf("%s was read in version %s, and in version %s before", r.key(), s.ResourceVersion,
		r.resourceVersion)
	r.forgetLocked(notify)
	return true
}

// forgetLocked drops the version of a record, so that the next observation counts, and marks it as out of sync.
func (r *record) forgetLocked(notify *notices) {
	r.resourceVersion, r.digest = "", 0
	r.markLocked(notify)
}

// outdates reports whether the object may have changed after the version that was compared.
func (r *record) outdates(s Observation) bool {
	if r.resourceVersion == "" || s.ResourceVersion == "" {
		return false
	}
	if r.state == missing {
		// A read that was sent after the object was reported missing, and finds the same version, proves that it
		// exists.
		found := r.is(s.Since) && (r.missingFromList || s.ResourceVersion == r.resourceVersion)
		return !found && !newer(s.ResourceVersion, r.resourceVersion)
	}
	if r.resourceVersion == s.ResourceVersion || newer(s.ResourceVersion, r.resourceVersion) {
		return false
	}
	return r.uid != s.UID || s.Digest == 0 || s.Digest != r.digest
}

// setHealth records the health in an observation, if any, and reports whether it changed.
func (x *observed) setHealth(s Observation) (changed bool) {
	if s.Health == nil {
		return false
	}
	next := health{version: unique.Make(s.Version)}
	if *s.Health != (healthcheck.Status{}) {
		next.status = s.Health
	}
	for i, was := range x.healths {
		if was.version == next.version {
			if x.resourceVersion == s.ResourceVersion && was.status != nil && was.status.CountsPods() {
				return false // The Pods may have been counted since the first observation of this version.
			}
			x.healths[i] = next
			return (was.status == nil) != (next.status == nil) || next.status != nil && *was.status != *next.status
		}
	}
	x.healths = append(x.healths, next)
	return next.status != nil
}

func (x *observed) healthIn(version unique.Handle[string]) (is healthcheck.Status, known bool) {
	for _, v := range x.healths {
		switch {
		case v.version != version:
		case v.status == nil:
			return healthcheck.Status{}, true
		default:
			return *v.status, true
		}
	}
	return healthcheck.Status{}, false
}

// newer reports whether a is certainly later than b.
func newer(a, b string) bool {
	if a == "" || b == "" || a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// ordered reports whether two versions can be compared. Those of aggregated APIs may have another format.
func ordered(a, b string) bool {
	_, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil
}
