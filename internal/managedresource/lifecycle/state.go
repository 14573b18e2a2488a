package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/brake"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// Phase is a stage in the life of a ManagedResource.
type Phase int

const (
	// Unseen means that no run began since the process started, or since the ManagedResource was ignored.
	Unseen Phase = iota
	// Due means that a run is needed. The Inbox has the reasons.
	Due
	// Running means that a run is under way, and has taken the Inbox over.
	Running
	// Synced means that the last run ended well, and nothing happened since. The Inbox is empty.
	Synced
	// AwaitingDeletion means that the last run ended while objects were being deleted, and nothing else happened since.
	AwaitingDeletion
	// Paused means that the annotation operation=wait-for-state forbids everything (MRT-7).
	Paused
	// Deleting means that the ManagedResource is being deleted, or went to another class, and its objects are deleted.
	Deleting
)

var phases = []Phase{Unseen, Due, Running, Synced, AwaitingDeletion, Paused, Deleting}

func (p Phase) String() string {
	return [...]string{"Unseen", "Due", "Running", "Synced", "AwaitingDeletion", "Paused", "Deleting"}[p]
}

// State is everything that is remembered of one ManagedResource. It lives in memory only: after a restart the first
// run visits every object that is not known to be in sync.
//
// A State is a value: Step returns a new one, and changes no map and no pointed-to value in place.
//
// Invariants: Run is set exactly in phase Running, and Pending exactly in phase AwaitingDeletion. The Inbox is empty
// in phase Synced, and not empty in phases Due, AwaitingDeletion, Paused and Deleting. Last is not nil in phase
// Synced.
type State struct {
	// UID is the ManagedResource's: another one by the same name starts anew.
	UID types.UID
	// Replaces is true until the objects of a former ManagedResource by the same name are forgotten.
	Replaces bool

	Phase Phase
	// Last is the result of the last successful run; nil without one.
	Last *Completed
	// Inbox has the requests since the last successful run, or since the present run began.
	Inbox Inbox
	Run   *Run
	// Pending is the input of the last run while the objects that it deletes still exist.
	Pending *Pending
	Retry   Retry

	// Operation is the value of the operation annotation that the last run found.
	Operation string
	// Change measures how long a change of the content takes to be applied.
	Change Change
	// SourceChanged is true if the specification or a Secret has changed since the last run began.
	SourceChanged bool
	// Pruned identifies the request that objects were deleted for last.
	Pruned Pruned
	// MassDeletion is the mass deletion that waits; the zero value if none does.
	MassDeletion MassDeletion
}

// Inbox has the requests for a run.
type Inbox struct {
	// Recheck requests a run only because the last one did not succeed.
	Recheck bool
	// Full requests a run that visits every object, even if it is known to be in sync.
	Full bool
	// Requested is true if a user requested the full run: drift is repaired without delay.
	Requested bool
	// Periodic requests the writes of a sync period to objects that no watch covers (MRC-3c: alwaysUpdate).
	Periodic bool
	// SecretsMissed is true if changes of Secrets may have been missed. A version that was read before proves nothing
	// then: a restored source may give the same version to other content.
	SecretsMissed bool
	// SecretDeleted is true if a watch reported the deletion of a Secret.
	SecretDeleted bool
	// Secrets are the versions that a watch reported, by name; "" is a deleted Secret.
	Secrets map[string]string
	// Visited are the objects that unsuccessful runs for Full have visited. The map is replaced, never changed.
	Visited map[objects.ID]struct{}
}

// Empty reports whether nothing requests a run.
func (i Inbox) Empty() bool {
	return !i.Recheck && !i.Full && !i.Requested && !i.Periodic && !i.SecretsMissed && !i.SecretDeleted &&
		len(i.Secrets) == 0
}

// merged returns an Inbox that was put back, with what arrived meanwhile.
func (i Inbox) merged(arrived Inbox) Inbox {
	both := Inbox{
		Recheck: i.Recheck || arrived.Recheck, Full: i.Full || arrived.Full, Requested: i.Requested || arrived.Requested,
		Periodic: i.Periodic || arrived.Periodic, SecretsMissed: i.SecretsMissed || arrived.SecretsMissed,
		SecretDeleted: i.SecretDeleted || arrived.SecretDeleted,
		Secrets:       i.Secrets, Visited: i.Visited,
	}
	for name, version := range arrived.Secrets {
		both.Secrets = with(both.Secrets, name, version)
	}
	if arrived.Full {
		both.Visited = arrived.Visited // The request that arrived requires another visit of every object.
	}
	return both
}

// with returns a map with one more entry.
func with(secrets map[string]string, name, version string) map[string]string {
	next := make(map[string]string, len(secrets)+1)
	maps.Copy(next, secrets)
	next[name] = version
	return next
}

// Run is the input that a run took over when it began.
type Run struct {
	Inbox
	// Last is the result of the last successful run; nil in the first run.
	Last *Completed
	// Failed is the content that could not be applied the last time.
	Failed string
	// Known are the versions that the Secrets had at least when the run began, by name, as any ManagedResource knows them.
	Known map[string][]string
}

// VisitsUnknown reports whether the run visits every object that is not known to be in sync, and makes the writes of
// alwaysUpdate: it is the first one, or a full one.
func (r *Run) VisitsUnknown() bool { return r.Last == nil || r.Full }

// HasRead reports whether the last successful run was for this form of the ManagedResource, and read these versions of
// Secrets, whose content is the same as then.
func (r *Run) HasRead(generation int64, versions map[string]string) bool {
	return !r.SecretsMissed && r.Last != nil && r.Last.Generation == generation &&
		maps.Equal(versions, r.Last.Secrets)
}

// ReadOutdated reports whether a Secret was read in an older version than was known when the run began (MRT-4): the
// answer is from a server that lags, and no event will report the later version.
func (r *Run) ReadOutdated(versions map[string]string) bool {
	for name, read := range versions {
		if slices.ContainsFunc(r.Known[name], func(known string) bool { return isOlder(read, known) }) {
			return true
		}
	}
	return false
}

// isOlder reports whether a version of a Secret, <UID>/<resource version>, is certainly older than another one of it.
func isOlder(version, than string) bool {
	uid, read, _ := strings.Cut(version, "/")
	other, known, _ := strings.Cut(than, "/")
	order, err := resourceversion.CompareResourceVersion(read, known)
	return uid == other && err == nil && order < 0
}

// Completed is the result of a successful run.
type Completed struct {
	Generation int64
	// Secrets are the versions that the run read, by name.
	Secrets  map[string]string
	Checksum string
	// Manifests says where the manifests of the objects were; nil for few objects.
	Manifests brake.Manifests
	// Applied is the condition ResourcesApplied, without its message.
	Applied   meta.ConditionChange
	Inventory uint64
	// IgnoredSince is the time in seconds since which objects of the ManagedResource are ignored; zero if none is.
	IgnoredSince int64
}

// Reported reports whether the status still shows the result of the run. A former leader may have begun or ended
// another run since. Another writer may have removed entries from the inventory, which would orphan their objects.
func (c *Completed) Reported(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Status.ObservedGeneration == c.Generation && mr.Status.SecretsDataChecksum != nil &&
		*mr.Status.SecretsDataChecksum == c.Checksum &&
		shows(mr, c.Applied, c.Inventory)
}

func shows(mr *resourcesv1alpha1.ManagedResource, applied meta.ConditionChange, inventory uint64) bool {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	return condition != nil && condition.Status == applied.Status && condition.Reason == applied.Reason &&
		meta.InventoryDigest(mr.Status.Resources) == inventory
}

// MassDeletion records since when this process sees the condition about a mass deletion that waits (MRX-21).
type MassDeletion struct {
	// Message is the condition's.
	Message string
	// Since is the time of the first read that found it, Seen that of the last one; there was no gap between them.
	Since, Seen time.Time
}

// SeenAgain returns the state after another read of a condition with a message, which continues the former ones unless
// the last one is longer ago than a gap.
func (h MassDeletion) SeenAgain(message string, now time.Time, gap time.Duration) MassDeletion {
	if h.Message != message || now.Sub(h.Seen) > gap || now.Before(h.Seen) {
		h = MassDeletion{Message: message, Since: now}
	}
	h.Seen = now
	return h
}

// Pending is the input of a run that ended while objects were being deleted.
//
// It saves reading and decoding the Secrets once more and, after a run that applied the new objects, reading the
// objects that no watch covers. It counts while each of the objects is held, so for a minute at most, and until a time
// at most.
type Pending struct {
	Generation int64
	// Applied and Inventory are the results that the run wrote to the status.
	Applied   meta.ConditionChange
	Inventory uint64
	Objects   []resourcesv1alpha1.ObjectReference
	Until     time.Time
}

// IsCurrent reports whether the ManagedResource is as the run left it, and Until has not passed.
func (p *Pending) IsCurrent(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	return now.Before(p.Until) && p.Generation == mr.Generation && shows(mr, p.Applied, p.Inventory)
}

// Retry is the input of the run that follows an unsuccessful one.
type Retry struct {
	// Superseded counts the runs in a row that another form of the ManagedResource superseded, for the back-off.
	Superseded int
	// Failed is the content that the last run could not apply.
	Failed string
	// Refused counts the runs in a row whose failure only other content can end. The next one begins at Until, if nothing
	// asks for it before.
	Refused int
	Until   time.Time
}

const (
	// firstRefused is the pause after the first refusal; it doubles, up to lastRefused (MRB-52).
	firstRefused, lastRefused = 10 * time.Second, 10 * time.Minute
	// firstRetry is the pause after the first superseded run; it doubles up to 2^(mostRetries-1) times that, some two
	// seconds, so that a cache that lags is not polled all the time.
	firstRetry  = time.Millisecond
	mostRetries = 12
)

// refused returns a Retry after one more run that was refused.
func (r Retry) refused(now time.Time) Retry {
	pause := lastRefused
	if r.Refused < 6 { // 10 s × 2⁶ are more than ten minutes.
		pause = firstRefused << r.Refused
	}
	r.Refused, r.Until = r.Refused+1, now.Add(pause)
	return r
}

// superseded returns a Retry after one more run that was superseded.
func (r Retry) superseded() Retry {
	r.Superseded = min(r.Superseded+1, mostRetries)
	return r
}

// backOff returns the pause after a superseded run.
func (r Retry) backOff() time.Duration { return firstRetry << (r.Superseded - 1) }

// Change measures the time from a change of the content to its application. It lasts until a successful run has read
// all reported versions. After a failure, the next change restarts the measurement, as it may be the repair.
type Change struct {
	// Since is the zero time if nothing has changed.
	Since      time.Time
	Generation int64
	Failed     bool
}

func (c Change) comes(generation int64, now time.Time) Change {
	if c.Since.IsZero() || c.Failed {
		c.Since, c.Failed = now, false
	}
	c.Generation = max(c.Generation, generation)
	return c
}

// Pruned identifies the request that objects were deleted for.
type Pruned struct {
	Generation int64
	// Requested is true if a user requested a full run since.
	Requested bool
}

// IsOutOfSync reports whether a run is needed, or a run with requests is under way. Its objects may all be in sync.
func (s State) IsOutOfSync() bool { return !s.Inbox.Empty() || s.Run != nil && !s.Run.Empty() }

// AtRest reports whether no run is due for this generation of the ManagedResource.
func (s State) AtRest(generation int64) bool {
	return s.Last != nil && s.Last.Generation == generation && !s.IsOutOfSync()
}

// Newer reports whether a watch has reported, since the run began, other versions of Secrets than those that the run
// read.
func (s State) Newer(read map[string]string) bool {
	if s.Inbox.SecretDeleted {
		return true
	}
	for name, version := range s.Inbox.Secrets {
		if read[name] != version {
			return true
		}
	}
	return false
}
