package ledger

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/espalier-project/espalier/internal/health"
)

type state uint8

const (
	unseen  state = iota // nobody has looked yet
	present              // was there when last looked at
	missing              // was not
)

// kind and name are a Key in a fifth of its size: a hundred thousand objects have few kinds and namespaces.
type kind = unique.Handle[schema.GroupKind]

type name struct {
	namespace unique.Handle[string]
	name      string
}

func split(key Key) (kind, name) {
	return unique.Make(key.GroupKind), name{unique.Make(key.Namespace), key.Name}
}

func versionOf(ref Ref) unique.Handle[string] { return unique.Make(ref.Version) }

// record is what is known of one object. What holds whenever the lock is free, and TestModel checks:
//
//   - resourceVersion is the latest that anybody reported since the last reset; state, uid, digest, terminating
//     and verdict are what the object was like then. A report that is older changes nothing, whatever the state.
//   - verified means: present, and what was compared with the desired state is the version at resourceVersion, or one with
//     the same uid and digest. A verification that is older than that verifies nothing.
//   - suspect means not verified, and in the dirty set of the last of its owners.
//   - an object that was present, and was seen to change or to go since it was last compared, is suspect.
//   - again means suspect for no other reason than that the next write is to be sent, whatever is known of its result.
//   - untold means that a doubt was raised while a write of ours was under way, and that nobody was told: with no write under way,
//     nothing is untold.
type record struct {
	kind    kind
	name    name
	version unique.Handle[string]

	state       state
	terminating bool
	verified    bool
	suspect     bool
	givenUp     bool
	// again is true from when the object is to be written once more, as the API server kept only a part of it, until somebody looked or it
	// was changed.
	again bool
	// passed is how many of the owners said, since the object was last verified, that they cannot look at it.
	passed int
	// writes is how many requests of ours may change the object at present.
	writes uint8
	untold bool
	// listed is the number of the latest listing that had the object.
	listed uint32

	uid             types.UID
	resourceVersion string
	digest          uint64
	// desired is what the object was last compared with.
	desired uint64
	verdict *health.Verdict // nil is healthy and rolled out
	// created is the UID of the object that this process created, or gave up, if givenUp is true: the answer to its creation may come later.
	created types.UID
	// creator is the ManagedResource that it was created for, or that has taken it over since: it alone may say that the object is its own.
	creator *ownerRecord

	// owners has the one that began to track or verified the object last at its end: that one is told of drift, so that two
	// of them do not quarrel (MRB-16). There is always one.
	owners []*ownerRecord
}

type ownerRecord struct {
	owner   Owner
	records []*record
	dirty   map[*record]struct{}
	// unlabelled are those without the managed-by label, as far as this ManagedResource knows.
	unlabelled map[*record]struct{}
}

func (r *record) key() Key {
	return Key{GroupKind: r.kind.Value(), Namespace: r.name.namespace.Value(), Name: r.name.name}
}

// ref is the object as all who have it know it: while one of them does not put the label there, it may be without.
func (r *record) ref() Ref {
	return Ref{Key: r.key(), Version: r.version.Value(), Unlabelled: slices.ContainsFunc(r.owners, func(o *ownerRecord) bool { return o.unlabels(r) })}
}

// ref is an object as one of those who have it knows it.
func (o *ownerRecord) ref(r *record) Ref {
	return Ref{Key: r.key(), Version: r.version.Value(), Unlabelled: o.unlabels(r)}
}

func (o *ownerRecord) unlabels(r *record) bool {
	_, unlabelled := o.unlabelled[r]
	return unlabelled
}

// changedLocked is doubtLocked for a reason that is not one of ours.
func (r *record) changedLocked(told *notices) {
	r.again = false
	r.doubtLocked(told)
}

// doubtLocked takes back what was verified and tells the ManagedResource that is to look, once no write of ours is under way.
func (r *record) doubtLocked(told *notices) {
	r.verified, r.suspect = false, true
	r.owners[len(r.owners)-1].dirty[r] = struct{}{}
	r.tellLocked(told)
}

func (r *record) tellLocked(told *notices) {
	if r.untold = r.writes > 0; r.untold {
		return
	}
	o := r.owners[len(r.owners)-1]
	told.drift = append(told.drift, drift{o.owner, r.key()})
}

// leaveLocked takes a doubt from an owner, which has seen the object so, if at all, and gives it to the one that keeps it, nil if that is not on
// record.
func (r *record) leaveLocked(keeper, owner *ownerRecord, seen Sighting, told *notices) {
	delete(owner.dirty, r)
	last := len(r.owners) - 1
	i := slices.Index(r.owners, keeper)
	if r.suspect && r.owners[last] == owner && (i < 0 || i < last && r.passed > 0) && r.outdates(seen) {
		r.doubtLocked(told) // Nobody else looks at what came since.
		return
	}
	switch {
	case i < 0 && r.owners[last] == owner:
		r.suspect, r.untold, r.again, r.passed = false, false, false, 0
	case i >= 0 && i < last:
		r.owners = append(slices.Delete(r.owners, i, i+1), keeper)
		if r.passed > 0 {
			// The keeper said that it cannot look, and another one did. The next change is asked about anew.
			r.suspect, r.untold, r.again, r.passed = false, false, false, 0
			delete(keeper.dirty, r)
		} else if r.suspect {
			r.doubtLocked(told)
		}
	}
}

// passLocked gives a doubt of an owner that cannot look to the next one, unless all were asked. Those who were stand at the front.
func (r *record) passLocked(o *ownerRecord, told *notices) (passed bool) {
	last := len(r.owners) - 1
	if !r.suspect || r.owners[last] != o || r.passed >= last {
		return false // Without a doubt there is nothing to pass on: two that look for another reason would wake each other for ever.
	}
	r.passed++
	copy(r.owners[1:], r.owners[:last])
	r.owners[0] = o
	r.doubtLocked(told)
	return true
}

func (r *record) mark() Mark { return Mark{r.resourceVersion, r.uid, r.state} }

// turnBackLocked says whether the answer to a request proves that what was on record when it was sent, and still is, is of a time
// that never was. What else is on its way may be of that time, too: the next look settles it.
func (r *record) turnBackLocked(s Sighting, told *notices) bool {
	if s.Since != r.mark() || !newer(r.resourceVersion, s.ResourceVersion) {
		return false
	}
	r.resetLocked(told)
	told.turnedBack = true
	return true
}

// outdates says whether something may have happened to the object after the version that was compared.
func (r *record) outdates(s Sighting) bool {
	if r.resourceVersion == "" || s.ResourceVersion == "" {
		return false
	}
	if r.state == missing {
		// A read that was sent since nothing was found, and finds it as it was, says that it is there after all.
		found := s.Since == r.mark() && s.ResourceVersion == r.resourceVersion
		return !found && !newer(s.ResourceVersion, r.resourceVersion)
	}
	if r.resourceVersion == s.ResourceVersion || newer(s.ResourceVersion, r.resourceVersion) {
		return false
	}
	return r.uid != s.UID || s.Digest == 0 || s.Digest != r.digest
}

func (r *record) setVerdict(verdict *health.Verdict) bool {
	var next *health.Verdict
	if *verdict != (health.Verdict{}) {
		next = verdict
	}
	changed := (r.verdict == nil) != (next == nil) || (next != nil && *r.verdict != *next)
	r.verdict = next
	return changed
}

// newer says whether a is certainly later than b.
func newer(a, b string) bool {
	if a == "" || b == "" || a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// ordered says whether it is known which of two comes first; an aggregated API may count in its own way.
func ordered(a, b string) bool {
	_, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil
}
