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

// Phase is a phase of a ManagedResource.
type Phase int

const (
	// Unseen means that no run began since the process started, or since the ManagedResource was ignored.
	Unseen Phase = iota
	// Due means that a run is needed, for the reasons in the Inbox.
	Due
	// Running means that a run is in progress, and has taken over the Inbox.
	Running
	// Synced means that the last run succeeded, and nothing has happened since. The Inbox is empty.
	Synced
	// AwaitingDeletion means that objects were still being deleted when the last run ended, and nothing else has
	// happened since.
	AwaitingDeletion
	// Paused means that the annotation operation=wait-for-state forbids all actions (MRT-7).
	Paused
	// Deleting means that the ManagedResource is being deleted or has moved to another class, so that its objects are
	// deleted.
	Deleting
)

var phases = []Phase{Unseen, Due, Running, Synced, AwaitingDeletion, Paused, Deleting}

func (p Phase) String() string {
	return [...]string{"Unseen", "Due", "Running", "Synced", "AwaitingDeletion", "Paused", "Deleting"}[p]
}

// State is the data in memory about one ManagedResource. It is lost at a restart: the first run visits every object
// that is not known to be in sync.
//
// A State is a value: Step returns a new one, and never changes a map or a pointed-to value in place.
//
// Invariants: Run is set exactly in phase Running, and Pending exactly in phase AwaitingDeletion. The Inbox is empty
// in phase Synced, and not empty in phases Due, AwaitingDeletion, Paused and Deleting. Last is not nil in phase
// Synced.
type State struct {
	// UID is the UID of the ManagedResource. Another ManagedResource with the same name starts with a new State.
	UID types.UID
	// Replaces is true until the state of the objects of a former ManagedResource with the same name is dropped.
	Replaces bool

	Phase Phase
	// Last is the result of the last successful run; nil if there is none.
	Last *Completed
	// Inbox has the requests since the last successful run, or since the current run began.
	Inbox Inbox
	Run   *Run
	// Pending is the input of the last run, kept while the objects that it deletes still exist.
	Pending *Pending
	Retry   Retry

	// Operation is the value of the operation annotation that the last run found.
	Operation string
	// Change measures the time that a change of the content takes to be applied.
	Change Change
	// SourceChanged is true if the specification or a Secret has changed since the last run began.
	SourceChanged bool
	// Pruned identifies the request for which objects were last deleted.
	Pruned Pruned
	// MassDeletion is the mass deletion that waits; the zero value if there is none.
	MassDeletion MassDeletion
}

// Inbox has the requests for a run.
type Inbox struct {
	// Recheck requests a run only because the last one did not succeed.
	Recheck bool
	// Full requests a run that visits every object, even if it is known to be in sync.
	Full bool
	// Requested is true if a user requested the full run, so that drift is repaired without delay.
	Requested bool
	// Periodic requests the writes of a sync period to objects that no watch covers (MRC-3c: alwaysUpdate).
	Periodic bool
	// SecretsMissed is true if changes of Secrets may have been missed. A version that was read before then proves
	// nothing, because a restored source may use the same version for different content.
	SecretsMissed bool
	// SecretDeleted is true if a watch reported the deletion of a Secret.
	SecretDeleted bool
	// Secrets are the versions that a watch reported, by name; "" means that the Secret was deleted.
	Secrets map[string]string
	// Visited are the objects that unsuccessful full runs have already visited. The map is replaced, never changed.
	Visited map[objects.ID]struct{}
}

// Empty reports whether the Inbox has no request for a run.
func (i Inbox) Empty() bool {
	return !i.Recheck && !i.Full && !i.Requested && !i.Periodic && !i.SecretsMissed && !i.SecretDeleted &&
		len(i.Secrets) == 0
}

// merged returns an Inbox that a run puts back, combined with the requests that arrived during the run.
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

// with returns a copy of the map with one more entry.
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
	// Failed is the content that the last run could not apply.
	Failed string
	// Known has, for each Secret, the versions that were known to any ManagedResource when the run began.
	Known map[string][]string
}

// VisitsUnknown reports whether the run visits every object that is not known to be in sync, and makes the writes of
// alwaysUpdate: it is the first run, or a full one.
func (r *Run) VisitsUnknown() bool { return r.Last == nil || r.Full }

// HasRead reports whether the last successful run was for this generation of the ManagedResource and these versions
// of its Secrets, so that the content is the same.
func (r *Run) HasRead(generation int64, versions map[string]string) bool {
	return !r.SecretsMissed && r.Last != nil && r.Last.Generation == generation &&
		maps.Equal(versions, r.Last.Secrets)
}

// ReadOutdated reports whether a Secret was read in an older version than was known when the run began (MRT-4): the
// response is from a server that lags, and no event will report the later version.
func (r *Run) ReadOutdated(versions map[string]string) bool {
	for name, read := range versions {
		if slices.ContainsFunc(r.Known[name], func(known string) bool { return isOlder(read, known) }) {
			return true
		}
	}
	return false
}

// isOlder reports whether a version of a Secret, <UID>/<resource version>, is certainly older than another version of
// it.
func isOlder(version, than string) bool {
	uid, read, _ := strings.Cut(version, "/")
	other, known, _ := strings.Cut(than, "/")
	order, err := resourceversion.CompareResourceVersion(read, known)
	return uid == other && err == nil && order < 0
}

// Completed is the result of a successful run.
type Completed struct {
	Generation int64
	// Secrets are the versions of the Secrets that the run read, by name.
	Secrets  map[string]string
	Checksum string
	// Manifests has the places of the objects' manifests; nil if there are few objects.
	Manifests brake.Manifests
	// Applied is the condition ResourcesApplied, without its message.
	Applied   meta.ConditionChange
	Inventory uint64
	// IgnoredSince is the time, in seconds, since which objects of the ManagedResource are ignored; zero if none is.
	IgnoredSince int64
}

// Reported reports whether the status still shows the result of the run. A former leader may have begun or ended
// another run since, or another writer may have removed entries from the inventory, which would orphan their objects.
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

// MassDeletion records how long this process has seen the condition about a mass deletion that waits (MRX-21).
type MassDeletion struct {
	// Message is the message of the condition.
	Message string
	// Since is the time of the first read that found the condition, Seen the time of the last one; there was no long
	// gap between reads.
	Since, Seen time.Time
}

// SeenAgain returns the state after another read of the condition. The time continues if the message is the same and
// the last read was not longer ago than gap.
func (h MassDeletion) SeenAgain(message string, now time.Time, gap time.Duration) MassDeletion {
	if h.Message != message || now.Sub(h.Seen) > gap || now.Before(h.Seen) {
		h = MassDeletion{Message: message, Since: now}
	}
	h.Seen = now
	return h
}

// Pending is the input of a run that ended while objects were being deleted.
//
// It saves reading and decoding the Secrets again and, after a run that applied the new objects, reading the objects
// that no watch covers. It is valid while each deletion is pending, which is a minute at most, and no longer than
// Until.
type Pending struct {
	Generation int64
	// Applied and Inventory are the results in the status that the run wrote.
	Applied   meta.ConditionChange
	Inventory uint64
	Objects   []resourcesv1alpha1.ObjectReference
	Until     time.Time
}

// IsCurrent reports whether the ManagedResource is unchanged since the run, and Until has not passed.
func (p *Pending) IsCurrent(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	return now.Before(p.Until) && p.Generation == mr.Generation && shows(mr, p.Applied, p.Inventory)
}

// Retry is the information for the run that follows an unsuccessful one.
type Retry struct {
	// Superseded counts consecutive runs that a change of the ManagedResource superseded, for the back-off.
	Superseded int
	// Failed is the content that the last run could not apply.
	Failed string
	// Refused counts consecutive runs whose failure only different content can end. The next run begins at Until,
	// unless another request arrives first.
	Refused int
	Until   time.Time
}

const (
	// firstRefused is the pause after the first refusal; it doubles, up to lastRefused (MRB-52).
	firstRefused, lastRefused = 10 * time.Second, 10 * time.Minute
	// firstRetry is the pause after the first superseded run. It doubles up to 2^(mostRetries-1) times that, some two
	// seconds, so that a lagging cache is not polled continuously.
	firstRetry  = time.Millisecond
	mostRetries = 12
)

// refused returns the Retry after another run that was refused.
func (r Retry) refused(now time.Time) Retry {
	pause := lastRefused
	if r.Refused < 6 { // 10 s × 2⁶ are more than ten minutes.
		pause = firstRefused << r.Refused
	}
	r.Refused, r.Until = r.Refused+1, now.Add(pause)
	return r
}

// superseded returns the Retry after another run that was superseded.
func (r Retry) superseded() Retry {
	r.Superseded = min(r.Superseded+1, mostRetries)
	return r
}

// backOff returns the pause after a superseded run.
func (r Retry) backOff() time.Duration { return firstRetry << (r.Superseded - 1) }

// Change measures the time from a change of the content to its application. It ends when a successful run has read
// all reported versions. After a failure, the next change restarts the measurement, because it may be the fix.
type Change struct {
	// Since is the zero time if there is no change to measure.
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

// Pruned identifies the request for which objects were deleted.
type Pruned struct {
	Generation int64
	// Requested is true if a user has requested a full run since.
	Requested bool
}

// IsOutOfSync reports whether a run is needed, or a run with requests is in progress. All objects may nevertheless be
// in sync.
func (s State) IsOutOfSync() bool { return !s.Inbox.Empty() || s.Run != nil && !s.Run.Empty() }

// AtRest reports whether this generation of the ManagedResource needs no run.
func (s State) AtRest(generation int64) bool {
	return s.Last != nil && s.Last.Generation == generation && !s.IsOutOfSync()
}

// Newer reports whether a watch has reported, since the run began, other versions of Secrets than the run read.
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
