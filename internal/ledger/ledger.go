package ledger

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/espalier-project/espalier/internal/health"
)

// Owner is a ManagedResource.
type Owner = types.NamespacedName

// Key identifies an object of the target; the namespace of cluster-scoped objects is empty. The version is not part of it.
type Key struct {
	schema.GroupKind
	Namespace, Name string
}

// Ref is an object in the version in which its manifest has it.
type Ref struct {
	Key
	Version string
	// Unlabelled is true for objects without the managed-by label, which no label-filtered watch sees.
	Unlabelled bool
}

// GVK is the kind of the object with its version.
func (r Ref) GVK() schema.GroupVersionKind { return r.WithVersion(r.Version) }

// Sighting is what was seen of an object, by a watch or in the answer to a request.
type Sighting struct {
	Key             Key
	UID             types.UID
	ResourceVersion string
	// Digest stands for all that decides about drift; zero means that only equal resource versions prove sameness.
	Digest uint64
	// Desired stands for what the object was compared with; only Verified needs it.
	Desired uint64
	// Verdict is the object's own judgement; nil if the sighting says nothing of it.
	Verdict *health.Verdict
}

type state int

const (
	unseen  state = iota // nobody has looked yet
	present              // was there when last looked at
	missing              // was not
)

type record struct {
	// owners has the one that began to track or verified the object last at its end: that one is told of drift, so that two
	// of them do not quarrel (MRB-16).
	owners []Owner
	ref    Ref

	state           state
	uid             types.UID
	resourceVersion string
	digest          uint64
	desired         uint64
	// verified is true if the object was as it should be at resourceVersion.
	verified bool
	// suspect is true from the moment somebody else's change was noticed until the object was looked at.
	suspect bool
	verdict *health.Verdict // nil is healthy and rolled out
	// wrote is the UID of the object that this process wrote.
	wrote types.UID
}

type ownerRecord struct {
	keys  []Key
	dirty map[Key]struct{}
}

// Ledger is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	records map[Key]*record
	owners  map[Owner]*ownerRecord
	pods    podCounts
	// deployments finds a Deployment by its UID.
	deployments map[types.UID]Key

	onDrift   func(Owner, Key)
	onVerdict func(Owner)
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{
		records:     map[Key]*record{},
		owners:      map[Owner]*ownerRecord{},
		pods:        newPodCounts(),
		deployments: map[types.UID]Key{},
		onDrift:     func(Owner, Key) {},
		onVerdict:   func(Owner) {},
	}
}

// Subscribe sets what is called, outside the lock, when an object of a ManagedResource may have drifted and when the
// judgement about one changed. It must be called before anything is reported.
func (l *Ledger) Subscribe(onDrift func(Owner, Key), onVerdict func(Owner)) {
	l.onDrift, l.onVerdict = onDrift, onVerdict
}

// Track sets the objects of a ManagedResource; those that it no longer has are forgotten unless another one has them.
func (l *Ledger) Track(owner Owner, refs []Ref) {
	l.mu.Lock()
	var orphaned []Key
	previous := l.owners[owner]
	if previous == nil && len(refs) == 0 {
		l.mu.Unlock()
		return
	}
	current := &ownerRecord{keys: make([]Key, 0, len(refs)), dirty: map[Key]struct{}{}}
	wanted := make(map[Key]struct{}, len(refs))
	for _, ref := range refs {
		if _, twice := wanted[ref.Key]; twice {
			continue
		}
		wanted[ref.Key] = struct{}{}
		current.keys = append(current.keys, ref.Key)
		r := l.records[ref.Key]
		if r == nil {
			r = &record{}
			l.records[ref.Key] = r
		}
		r.ref = ref
		if !slices.Contains(r.owners, owner) {
			r.owners = append(r.owners, owner)
		}
	}
	if previous != nil {
		for key := range previous.dirty {
			if _, kept := wanted[key]; kept {
				current.dirty[key] = struct{}{}
			}
		}
		for _, key := range previous.keys {
			if _, kept := wanted[key]; !kept {
				if l.dropOwnerLocked(owner, key) {
					orphaned = append(orphaned, key)
				}
			}
		}
	}
	l.owners[owner] = current
	if len(refs) == 0 {
		delete(l.owners, owner)
	}
	heirs := l.suspectLocked(orphaned)
	l.mu.Unlock()
	for _, heir := range heirs {
		l.onDrift(heir.owner, heir.key)
	}
}

// dropOwnerLocked reports whether another ManagedResource inherits the object.
func (l *Ledger) dropOwnerLocked(owner Owner, key Key) bool {
	r := l.records[key]
	if r == nil {
		return false
	}
	wasLast := len(r.owners) > 0 && r.owners[len(r.owners)-1] == owner
	r.owners = slices.DeleteFunc(r.owners, func(o Owner) bool { return o == owner })
	if len(r.owners) == 0 {
		l.setUIDLocked(r, "")
		delete(l.records, key)
		return false
	}
	return wasLast
}

type notice struct {
	owner Owner
	key   Key
}

func (l *Ledger) suspectLocked(keys []Key) []notice {
	var notices []notice
	for _, key := range keys {
		if r := l.records[key]; r != nil {
			r.verified, r.suspect = false, true
			notices = append(notices, l.dirtyLocked(r))
		}
	}
	return notices
}

func (l *Ledger) dirtyLocked(r *record) notice {
	owner := r.owners[len(r.owners)-1]
	if o := l.owners[owner]; o != nil {
		o.dirty[r.ref.Key] = struct{}{}
	}
	return notice{owner, r.ref.Key}
}

// Verified reports that an object was found, or made, as it should be.
func (l *Ledger) Verified(owner Owner, s Sighting) {
	l.mu.Lock()
	r := l.records[s.Key]
	if r == nil {
		l.mu.Unlock()
		return
	}
	changed := r.state != present
	if r.state == present && r.uid == s.UID && newer(r.resourceVersion, s.ResourceVersion) && r.suspect {
		// A watch has already told of a later version: that one is not verified.
		if o := l.owners[owner]; o != nil {
			o.dirty[s.Key] = struct{}{}
		}
		l.mu.Unlock()
		l.onDrift(owner, s.Key)
		return
	}
	if i := slices.Index(r.owners, owner); i >= 0 && i != len(r.owners)-1 {
		r.owners = append(slices.Delete(r.owners, i, i+1), owner)
	}
	if s.Verdict != nil {
		changed = r.setVerdict(s.Verdict) || changed
	}
	l.setUIDLocked(r, s.UID)
	r.state, r.digest, r.desired, r.verified, r.suspect = present, s.Digest, s.Desired, true, false
	if !newer(r.resourceVersion, s.ResourceVersion) {
		r.resourceVersion = s.ResourceVersion
	}
	if o := l.owners[owner]; o != nil {
		delete(o.dirty, s.Key)
	}
	owners := slices.Clone(r.owners)
	l.mu.Unlock()
	if changed {
		for _, o := range owners {
			l.onVerdict(o)
		}
	}
}

// Seen reports what a watch saw, or what a read found that compared nothing.
func (l *Ledger) Seen(s Sighting) {
	l.mu.Lock()
	r := l.records[s.Key]
	if r == nil || (r.state == present && r.uid == s.UID && newer(r.resourceVersion, s.ResourceVersion)) {
		l.mu.Unlock()
		return
	}
	verdictChanged := r.state != present
	if s.Verdict != nil {
		verdictChanged = r.setVerdict(s.Verdict) || verdictChanged
	}
	same := r.verified && r.state == present && r.uid == s.UID &&
		(r.resourceVersion == s.ResourceVersion || (s.Digest != 0 && r.digest == s.Digest))
	wasVerified := r.verified || r.state == missing
	l.setUIDLocked(r, s.UID)
	r.state, r.resourceVersion = present, s.ResourceVersion
	var drift *notice
	if !same && wasVerified {
		r.verified, r.suspect = false, true
		n := l.dirtyLocked(r)
		drift = &n
	}
	owners := slices.Clone(r.owners)
	l.mu.Unlock()
	if drift != nil {
		l.onDrift(drift.owner, drift.key)
	}
	if verdictChanged {
		for _, o := range owners {
			l.onVerdict(o)
		}
	}
}

// Gone reports that an object is not there any more. resourceVersion is that of the report; an object verified later than
// that is not believed to be gone. An empty uid means that any object of the name was meant.
func (l *Ledger) Gone(key Key, uid types.UID, resourceVersion string) {
	l.mu.Lock()
	r := l.records[key]
	if r == nil || r.state == missing ||
		(uid != "" && r.uid != "" && r.uid != uid) || newer(r.resourceVersion, resourceVersion) {
		l.mu.Unlock()
		return
	}
	r.state, r.verdict = missing, nil
	var drift *notice
	if r.verified || r.suspect {
		r.suspect = true
		n := l.dirtyLocked(r)
		drift = &n
	}
	r.verified = false
	owners := slices.Clone(r.owners)
	l.mu.Unlock()
	if drift != nil {
		l.onDrift(drift.owner, drift.key)
	}
	for _, o := range owners {
		l.onVerdict(o)
	}
}

// Suspect marks an object as one to look at, such as when an autoscaler came or went.
func (l *Ledger) Suspect(key Key) {
	l.mu.Lock()
	notices := l.suspectLocked([]Key{key})
	l.mu.Unlock()
	for _, n := range notices {
		l.onDrift(n.owner, n.key)
	}
}

// Listed reports a complete list of a kind: what is in the scope, is on record and was not listed is gone.
func (l *Ledger) Listed(inScope func(Ref) bool, listed map[Key]struct{}, resourceVersion string) {
	l.mu.Lock()
	var gone []Key
	for key, r := range l.records {
		if _, found := listed[key]; !found && r.state == present && inScope(r.ref) {
			gone = append(gone, key)
		}
	}
	l.mu.Unlock()
	for _, key := range gone {
		l.Gone(key, "", resourceVersion)
	}
}

// Dirty returns the objects of a ManagedResource that must be looked at.
func (l *Ledger) Dirty(owner Owner) []Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return nil
	}
	keys := make([]Key, 0, len(o.dirty))
	for key := range o.dirty {
		keys = append(keys, key)
	}
	return keys
}

// IsVerified says whether an object is known to be as it should, compared with the same desired state.
func (l *Ledger) IsVerified(key Key, desired uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[key]
	return r != nil && r.verified && !r.suspect && r.desired == desired
}

// Refs returns the objects of a ManagedResource.
func (l *Ledger) Refs(owner Owner) []Ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.owners[owner]
	if o == nil {
		return nil
	}
	refs := make([]Ref, 0, len(o.keys))
	for _, key := range o.keys {
		if r := l.records[key]; r != nil {
			refs = append(refs, r.ref)
		}
	}
	return refs
}

// Lookup returns what is known of an object: whether anybody has looked yet, whether it is there, whether it is about to be
// looked at, and its verdict.
func (l *Ledger) Lookup(key Key) Finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[key]
	if r == nil {
		return Finding{}
	}
	f := Finding{Known: r.state != unseen, Present: r.state == present, Suspect: r.suspect, UID: r.uid}
	if r.verdict != nil {
		f.Verdict = *r.verdict
	}
	return f
}

// Finding is the answer of Lookup.
type Finding struct {
	Known, Present, Suspect bool
	UID                     types.UID
	Verdict                 health.Verdict
}

// Size is the number of objects on record.
func (l *Ledger) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
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
