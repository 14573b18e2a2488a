package objects

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
)

type state uint8

const (
	unseen  state = iota // nobody has looked yet
	present              // was there when last looked at
	missing              // was not
)

// certainty reports whether an object is known to be as it should.
type certainty uint8

const (
	unverified certainty = iota // nobody knows, and nobody is to look
	verified                    // it is as it should
	stale                       // the last of its owners is to look
)

// kind and name are a Key in a fifth of its size: a hundred thousand objects have few kinds and namespaces.
type kind = unique.Handle[schema.GroupKind]

type name struct {
	namespace unique.Handle[string]
	name      string
}

// noNamespace is the namespace of objects that have none.
var noNamespace = unique.Make("")

func split(key Key) (kind, name) {
	return unique.Make(key.GroupKind), name{unique.Make(key.Namespace), key.Name}
}

func versionOf(ref Ref) unique.Handle[string] { return unique.Make(ref.Version) }

// record is what is known of one object. Invariants whenever the lock is free, which TestModel checks:
//
//   - resourceVersion is the latest that was reported since the last reset; state, uid, digest, terminating
//     and verdict describe the object at that version. A report that is older changes nothing, whatever the state.
//   - certainty is verified: present, and what was compared with the desired state is the version at resourceVersion, or one with
//     the same uid and digest. A verification that is older than that verifies nothing.
//   - certainty is suspect: in the dirty set of the last of its owners.
//   - missingFromList means missing, and resourceVersion that of a list that did not have it: the object may be there without the label that
//     the list went by, in an older version.
//   - unlabelledLive means present, because a request found the object though lists or watches had reported that it is not there: it may lack the label, so
//     that no watch reports its changes.
//   - verdicts has the latest reported health of the object for each version in which it was seen; its health in other versions
//     is not known.
//   - an object that was present, and is seen by other lists and watches than before, because a version or label has changed, is suspect.
//   - an object that was present, and was seen to change or to go since it was last compared, is suspect.
//   - retryPartial means suspect for no other reason than that the next write is to be sent, whatever is known of its result.
//   - untold means that a doubt was raised while a write of ours was under way, and that no subscriber was notified: with no write under way,
//     untold is false.
type record struct {
	kind kind
	name name
	// version is the one in which the first owner had the object; the versions of an ownerRecord have the exceptions.
	version unique.Handle[string]

	state           state
	missingFromList bool
	unlabelledLive  bool
	terminating     bool
	certainty       certainty
	disowned        bool
	// unlabelled is true while one of the owners does not put the label there, so that the object may be without.
	unlabelled bool
	// retryPartial is true from when the object is to be written once more, because the API server kept only a part of it,
	// until a run checked the object or it was changed.
	retryPartial bool
	// writes counts the requests of ours that may change the object at present.
	writes uint8
	untold bool
	// passed is how many of the owners said, since the object was last verified, that they cannot look at it: the first
	// ones.
	passed uint16
	// era counts how often all that is known was called into question. Answers to earlier requests do not end a doubt.
	era uint16
	// asked counts the requests to check the object for a reason that no version of the object shows. A check that began
	// before does not end that doubt.
	asked uint16
	// listed is the number of the latest listing that had the object, and since that of the latest that had begun when
	// this was last moved.
	listed, since uint32

	uid             types.UID
	resourceVersion string
	digest          uint64
	// desired is what the object was last compared with.
	desired  uint64
	verdicts []verdict
	// created is the UID of the object that this process created, or gave up, if disowned is true: the answer to its
	// creation may come later.
	created types.UID
	// creator is the ManagedResource that it was created for, or that has taken it over since: it alone may say that the
	// object is its own.
	creator *ownerRecord
	// rare is nil for most objects.
	rare *rare

	// owners ends with the owner that began to track or verified the object last: this owner is notified of drift, so that
	// two owners do not fight (MRB-16). There is always at least one owner.
	owners []*ownerRecord
}

type ownerRecord struct {
	owner   Owner
	records []*record
	dirty   map[*record]struct{}
	// unlabelled are those without the managed-by label, as far as this ManagedResource knows.
	unlabelled map[*record]struct{}
	// versions are of those that it has in another version than the record's.
	versions map[*record]unique.Handle[string]
	// run is what a run that is under way claims, nil if there is none; dropped what the last plan had no more.
	run     *run
	dropped dropped
}

// verdict is what an object says of itself in a version; nil is healthy and rolled out.
type verdict struct {
	version unique.Handle[string]
	verdict *healthcheck.Verdict
}

func (r *record) key() Key {
	return Key{GroupKind: r.kind.Value(), Namespace: r.name.namespace.Value(), Name: r.name.name}
}

// authoritativeFor reports whether lists of a scope report an object's absence, too. They do if one of those who have it
// has it in the scope's version; and while one of them does not put the label there, those that go by the label do not.
func (r *record) authoritativeFor(inScope func(Ref) bool) bool {
	return slices.ContainsFunc(r.owners, func(o *ownerRecord) bool {
		return inScope(Ref{Key: r.key(), Version: o.version(r).Value(), Unlabelled: r.unlabelled})
	})
}

// ref is an object as one of those who have it knows it.
func (o *ownerRecord) ref(r *record) Ref {
	return Ref{Key: r.key(), Version: o.version(r).Value(), Unlabelled: o.unlabels(r)}
}

func (o *ownerRecord) version(r *record) unique.Handle[string] {
	if version, other := o.versions[r]; other {
		return version
	}
	return r.version
}

func (o *ownerRecord) unlabels(r *record) bool {
	_, unlabelled := o.unlabelled[r]
	return unlabelled
}

// labelledLocked notes whether all who have the object label it.
func (l *Tracker) labelledLocked(r *record, notify *notices) {
	unlabelled := slices.ContainsFunc(r.owners, func(o *ownerRecord) bool { return o.unlabels(r) })
	if unlabelled != r.unlabelled {
		r.unlabelled = unlabelled
		l.changedLocked(r, notify)
	}
}

// changedLocked doubts an object that other lists report from now on. If the object was deleted while no watch ran, the
// former lists may have concluded nothing because it was not theirs any more, and the new lists because it was not
// theirs yet. Answers to earlier requests do not end the doubt.
func (l *Tracker) changedLocked(r *record, notify *notices) {
	r.since = l.listings
	r.staleLocked(notify)
}

// staleLocked doubts an object that may not be there any more.
func (r *record) staleLocked(notify *notices) {
	r.era++
	if r.state == present && r.certainty != stale {
		r.changedLocked(notify)
	}
}

// changedLocked is outOfSyncLocked for a reason that is not one of ours.
func (r *record) changedLocked(notify *notices) {
	r.retryPartial = false
	r.outOfSyncLocked(notify)
}

// outOfSyncLocked takes back what was verified and notifies the ManagedResource that has to check, once no write of
// ours is under way.
func (r *record) outOfSyncLocked(notify *notices) {
	r.certainty = stale
	r.owners[len(r.owners)-1].dirty[r] = struct{}{}
	r.tellLocked(notify)
}

// unverifyLocked takes back that the object is in sync; a doubt stays.
func (r *record) unverifyLocked() {
	if r.certainty == verified {
		r.certainty = unverified
	}
}

func (r *record) tellLocked(notify *notices) {
	if r.untold = r.writes > 0; r.untold {
		return
	}
	o := r.owners[len(r.owners)-1]
	notify.drift = append(notify.drift, drift{o.owner, r.key()})
}

func (r *record) revision() Revision {
	return Revision{r.resourceVersion, r.uid, r.state, r.era, r.asked}
}

// is reports whether what was on record at a mark still is.
func (r *record) is(m Revision) bool {
	m.asked = r.asked
	return m == r.revision()
}

// turnBackLocked reports whether the answer to a request proves that what was on record when it was sent, and still is, is
// of a time that never was. Other news on the way may be of that time, too: the next look settles it.
func (r *record) turnBackLocked(s Observation, notify *notices) bool {
	if !r.is(s.Since) || r.missingFromList || !r.contradicts(s) {
		return false
	}
	r.resetLocked(notify)
	notify.versionsWentBackwards = true
	return true
}

// contradicts reports whether a later look than that which is on record can find an object like this only if resource
// versions were turned back: it is older, or another one in the same version.
func (r *record) contradicts(s Observation) bool {
	another := r.state == present && r.resourceVersion != "" && r.resourceVersion == s.ResourceVersion && r.uid != "" && s.UID != "" && r.uid != s.UID
	return another || newer(r.resourceVersion, s.ResourceVersion)
}

// foundLocked takes the answer to a request that was sent after a list did not have the object: it is there after all.
func (r *record) foundLocked(s Observation) {
	if r.missingFromList && r.is(s.Since) {
		r.resourceVersion = ""
	}
}

// outdates reports whether something may have happened to the object after the version that was compared.
func (r *record) outdates(s Observation) bool {
	if r.resourceVersion == "" || s.ResourceVersion == "" {
		return false
	}
	if r.state == missing {
		// A read that was sent since nothing was found, and finds it as it was, says that it is there after all.
		found := r.is(s.Since) && (r.missingFromList || s.ResourceVersion == r.resourceVersion)
		return !found && !newer(s.ResourceVersion, r.resourceVersion)
	}
	if r.resourceVersion == s.ResourceVersion || newer(s.ResourceVersion, r.resourceVersion) {
		return false
	}
	return r.uid != s.UID || s.Digest == 0 || s.Digest != r.digest
}

// setVerdict notes what a observation says of the object's health, if anything, and whether that is news.
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

// ordered reports whether it is known which of two comes first; an aggregated API may count in its own way.
func ordered(a, b string) bool {
	_, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil
}
