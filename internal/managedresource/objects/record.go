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
	missing              // did not exist then
)

// certainty is the knowledge whether an object is in sync.
type certainty uint8

const (
	unverified certainty = iota // unknown, and no check is due
	verified                    // in sync
	stale                       // an owner must check it
)

// kind and name are a ID in a fifth of its size: a hundred thousand objects have few kinds and namespaces.
type kind = unique.Handle[schema.GroupKind]

type name struct {
	namespace unique.Handle[string]
	name      string
}

func split(key ID) (kind, name) {
	return unique.Make(key.GroupKind()), name{unique.Make(key.Namespace), key.Name}
}

func versionOf(ref Ref) unique.Handle[string] { return unique.Make(ref.Version) }

// record is the knowledge about one object. Invariants whenever the lock is free, which TestModel checks:
//
//   - resourceVersion is the latest that was reported since the last reset; state, uid, digest, terminating and
//     verdicts describe the object at that version. An older report changes nothing, whatever the state.
//   - verified means present, and that the version that was compared with the desired state is the one at
//     resourceVersion, or has the same uid and digest. A verification of an older version verifies nothing.
//   - stale means that the record is in the dirty set of one of its owners at least.
//   - missingFromList means missing, as of the resourceVersion of a list by label: the object may exist without the
//     label, in an older version.
//   - unlabelledLive means present without the label, so that no list or watch reports the object.
//   - verdicts has the latest reported health of the object for each version in which it was seen; its health in other
//     versions is not known.
//   - an object that was present, and is seen by other lists and watches than before, because a version or label has
//     changed, is stale.
//   - an object that was present, and was seen to change or to go since it was last compared, is stale.
//   - retryPartial means stale for no other reason than a retry of the write, regardless of its known result.
//   - untold means that the object became stale while a ticket to apply it was open, and that no subscriber was
//     notified: without such a ticket, untold is false.
type record struct {
	kind kind
	name name
	// version is the version in which the first owner had the object; the versions of an ownerRecord have the
	// exceptions.
	version unique.Handle[string]

	state           state
	missingFromList bool
	unlabelledLive  bool
	terminating     bool
	certainty       certainty
	disowned        bool
	// retryPartial is true while the object must be written once more, because the API server kept only a part of it.
	// It ends when a run has checked the object, or when the object is changed.
	retryPartial bool
	// writes counts the open tickets to apply the object, also of runs that only read it.
	writes uint8
	untold bool
	// hasWriter is true if the writer is known: it is the first of the owners then.
	hasWriter bool
	// requested counts the requests to check the object for a reason that no version of the object shows. A check that
	// began before such a request leaves the object stale.
	requested uint16
	// listed is the number of the latest listing that had the object; since is the number of the latest listing that
	// had begun when the object came to its present lists.
	listed, since uint32

	uid             types.UID
	resourceVersion string
	digest          uint64
	// desired is a digest of the desired state that the object was last compared with.
	desired  uint64
	verdicts []verdict
	// created is the UID of the object that this process created, or gave up, if disowned is true: the answer to its
	// creation may come later.
	created types.UID
	// creator is the ManagedResource that the object was created for, or that has taken it over since: only the
	// creator may claim the object as its own.
	creator *ownerRecord
	// rare is nil for most objects.
	rare *rare

	// owners are the ManagedResources that have the object; there is always at least one. All are notified of drift, and
	// only the writer repairs it (MRB-16): the one that verified the object last.
	owners []*ownerRecord
}

type ownerRecord struct {
	owner   Owner
	records []*record
	dirty   map[*record]struct{}
	// versions has the objects whose version here differs from the record's.
	versions map[*record]unique.Handle[string]
	// run has the claims of a run that is under way, nil if there is none.
	run *run
}

// verdict is the health of an object in a version; nil is healthy and rolled out.
type verdict struct {
	version unique.Handle[string]
	verdict *healthcheck.Verdict
}

func (r *record) key() ID {
	return ID{r.kind.Value().Group, r.kind.Value().Kind, r.name.namespace.Value(), r.name.name}
}

// authoritativeFor reports whether lists of a scope prove that an object is absent. They do if one of its owners has
// it in the scope's version, unless it lacks the label.
func (r *record) authoritativeFor(inScope func(Ref) bool) bool {
	return !r.unlabelledLive && r.isIn(inScope)
}

// isIn reports whether one of the owners has the object in a scope.
func (r *record) isIn(inScope func(Ref) bool) bool {
	return slices.ContainsFunc(r.owners, func(o *ownerRecord) bool { return inScope(o.ref(r)) })
}

// ref returns an object as one of its owners has it.
func (o *ownerRecord) ref(r *record) Ref {
	return Ref{ID: r.key(), Version: o.version(r).Value()}
}

func (o *ownerRecord) version(r *record) unique.Handle[string] {
	if version, other := o.versions[r]; other {
		return version
	}
	return r.version
}

// listsChangedLocked marks an object as stale that other lists report from now on. If it was deleted while no watch ran,
// neither the former lists nor the new ones may have noticed. Answers to earlier requests leave it stale.
func (l *Tracker) listsChangedLocked(r *record, notify *notices) {
	r.since = l.listings
	r.staleLocked(notify)
}

// staleLocked marks an object as stale that may not exist any more.
func (r *record) staleLocked(notify *notices) {
	r.requested++
	if r.state == present && r.certainty != stale {
		r.changedLocked(notify)
	}
}

// markLocked marks an object as stale for a reason that no version of the object shows.
func (r *record) markLocked(notify *notices) {
	r.requested++
	r.changedLocked(notify)
}

// changedLocked is outOfSyncLocked for a reason other than a retry of ours.
func (r *record) changedLocked(notify *notices) {
	r.retryPartial = false
	r.outOfSyncLocked(notify)
}

// outOfSyncLocked marks an object as stale, and notifies the ManagedResources that have it, once no write of ours is
// under way.
func (r *record) outOfSyncLocked(notify *notices) {
	r.staleForAllLocked()
	r.tellLocked(notify)
}

func (r *record) staleForAllLocked() {
	r.certainty = stale
	for _, o := range r.owners {
		o.dirty[r] = struct{}{}
	}
}

// checkedLocked records that an owner need not check a stale object any more.
func (r *record) checkedLocked(o *ownerRecord) {
	delete(o.dirty, r)
	if r.certainty == stale && !slices.ContainsFunc(r.owners, r.isDirtyFor) {
		r.certainty, r.retryPartial, r.untold = unverified, false, false
	}
}

// writer returns the owner that repairs the object; nil if that is not known.
func (r *record) writer() *ownerRecord {
	if r.hasWriter {
		return r.owners[0]
	}
	return nil
}

// setWriterLocked sets the writer; nil is unknown.
func (r *record) setWriterLocked(o *ownerRecord) {
	i := slices.Index(r.owners, o)
	if r.hasWriter = i >= 0; r.hasWriter {
		r.owners[0], r.owners[i] = r.owners[i], r.owners[0]
	}
}

func (r *record) isDirtyFor(o *ownerRecord) bool {
	_, dirty := o.dirty[r]
	return dirty
}

// unverifyLocked takes back that the object is in sync; a stale object stays stale.
func (r *record) unverifyLocked() {
	if r.certainty == verified {
		r.certainty = unverified
	}
}

func (r *record) tellLocked(notify *notices) {
	if r.untold = r.writes > 0; r.untold {
		return
	}
	for _, o := range r.owners {
		if r.isDirtyFor(o) {
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

// restoredLocked reports whether an answer that is later than the recorded state proves that the store was restored to
// an earlier state (MRB-47): the object is older there, or another one in the same version. The answer counts from then
// on.
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

// forgetLocked forgets the version of a record, so that the next observation counts, and marks it as stale.
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
		// A read that was sent after the object was missed, and finds the same version, proves that it exists.
		found := r.is(s.Since) && (r.missingFromList || s.ResourceVersion == r.resourceVersion)
		return !found && !newer(s.ResourceVersion, r.resourceVersion)
	}
	if r.resourceVersion == s.ResourceVersion || newer(s.ResourceVersion, r.resourceVersion) {
		return false
	}
	return r.uid != s.UID || s.Digest == 0 || s.Digest != r.digest
}

// setVerdict records the health in an observation, if it has one, and reports whether that changed.
func (r *record) setVerdict(s Observation) (changed bool) {
	if s.Verdict == nil {
		return false
	}
	next := verdict{version: unique.Make(s.Version)}
	if *s.Verdict != (healthcheck.Verdict{}) {
		next.verdict = s.Verdict
	}
	for i, was := range r.verdicts {
		if was.version == next.version {
			if r.resourceVersion == s.ResourceVersion && was.verdict != nil && was.verdict.CountsPods() {
				return false // The Pods may have been counted since this version was observed first.
			}
			r.verdicts[i] = next
			return (was.verdict == nil) != (next.verdict == nil) || next.verdict != nil && *was.verdict != *next.verdict
		}
	}
	r.verdicts = append(r.verdicts, next)
	return next.verdict != nil
}

func (r *record) verdictIn(version unique.Handle[string]) (is healthcheck.Verdict, known bool) {
	for _, v := range r.verdicts {
		switch {
		case v.version != version:
		case v.verdict == nil:
			return healthcheck.Verdict{}, true
		default:
			return *v.verdict, true
		}
	}
	return healthcheck.Verdict{}, false
}

// newer reports whether a is certainly later than b.
func newer(a, b string) bool {
	if a == "" || b == "" || a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// ordered reports whether two versions can be compared; an aggregated API may count in its own way.
func ordered(a, b string) bool {
	_, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil
}
