package lifecycle

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Phase says what a ManagedResource waits for.
type Phase int

const (
	// Unseen means that no run began since the process started, or since the ManagedResource was ignored.
	Unseen Phase = iota
	// Due means that a run is needed. The Inbox says why.
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

// State is everything that is remembered of one ManagedResource. It lives in memory only: after a restart the first run
// visits every object.
//
// A State is a value: Step returns another one, and changes neither maps nor what pointers lead to.
//
// Invariants: Run is set exactly in phase Running, and Pending exactly in phase AwaitingDeletion. The Inbox is empty in
// phase Synced, and not empty in phases Due, AwaitingDeletion, Paused and Deleting. Last is not nil in phase Synced.
type State struct {
	// UID is the ManagedResource's: another one by the same name starts anew.
	UID types.UID
	// Replaces is true until what is known of the objects of a former ManagedResource by the same name is forgotten.
	Replaces bool

	Phase Phase
	// Last is how the last run ended that ended well; nil if none did.
	Last *Completed
	// Inbox is what happened since the last run that ended well, or since the present run began.
	Inbox Inbox
	Run   *Run
	// Pending is what the last run waits for.
	Pending *Pending
	Retry   Retry

	// Operation is the value of the operation annotation that the last run found.
	Operation string
	// Change measures how long a change of the content takes to be applied.
	Change Change
	// Pruned is what objects were deleted for last.
	Pruned Pruned
	// Alternation is how the content changed lately; nil if it did not.
	Alternation *Alternation
}

// Inbox is what happened and asks for a run.
type Inbox struct {
	// Recheck asks for a run for no other reason than that the last one did not end well.
	Recheck bool
	// Full asks for a run that visits every object, whether it is known to be in sync or not.
	Full bool
	// Requested is true if a user requested the full run: drift is repaired without delay.
	Requested bool
	// Periodic asks for the writes of a sync period to objects that no watch covers (MRC-3c: alwaysUpdate).
	Periodic bool
	// SecretsMissed is true if changes of Secrets may have been missed. A version that was read before proves nothing
	// then: a restored source gives it to something else in time.
	SecretsMissed bool
	// SecretDeleted is true if a watch told that a Secret is gone.
	SecretDeleted bool
	// Secrets are the versions that a watch told of, by name; "" is a deleted Secret.
	Secrets map[string]string
	// Visited are the objects that runs for Full have visited already, none of which ended well. It is replaced, never
	// changed.
	Visited map[plan.Key]struct{}
}

// Empty reports whether nothing asks for a run.
func (i Inbox) Empty() bool {
	return !i.Recheck && !i.Full && !i.Requested && !i.Periodic && !i.SecretsMissed && !i.SecretDeleted && len(i.Secrets) == 0
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
		both.Visited = arrived.Visited // Every object is to be visited after the wish that arrived.
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

// Run is what a run took over when it began.
type Run struct {
	Inbox
	// Last is how the last run ended that ended well; nil if this is the first.
	Last *Completed
	// Failed is the content that could not be applied the last time.
	Failed string
}

// VisitsUnknown reports whether the run has to look at every object that is not known to be in sync, and writes by
// alwaysUpdate: it is the first one, or a full one.
func (r *Run) VisitsUnknown() bool { return r.Last == nil || r.Full }

// HasRead reports whether the last run that ended well was for this form of the ManagedResource, and read these versions
// of Secrets, which have what they had then.
func (r *Run) HasRead(generation int64, versions map[string]string) bool {
	return !r.SecretsMissed && r.Last != nil && !r.Last.Previous && r.Last.Generation == generation && maps.Equal(versions, r.Last.Secrets)
}

// Completed is how a run ended well.
type Completed struct {
	Generation int64
	// Secrets are the versions that were read, by name.
	Secrets  map[string]string
	Checksum string
	// Content is the digest of the content that was read.
	Content uint64
	// Applied is the condition ResourcesApplied, without its message.
	Applied   meta.ConditionChange
	Inventory uint64
	// Previous is true if the run kept up the content of before, as a roll-out group holds back what the Secrets have now.
	// Observed is the generation that the status has then.
	Previous bool
	Observed int64
	// LeftAlone is true if the run left all objects alone, as the content of before is not there any more.
	LeftAlone bool
}

func (c *Completed) observed() int64 {
	if c.Previous {
		return c.Observed
	}
	return c.Generation
}

// Reported reports whether the status of a ManagedResource is still what the run wrote. A former leader may have begun a
// run meanwhile without ending it, or ended a run with what it had read before. Another writer of the status may have
// removed entries from the inventory, without which their objects would be left behind one day.
func (c *Completed) Reported(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Status.ObservedGeneration == c.observed() && mr.Status.SecretsDataChecksum != nil && *mr.Status.SecretsDataChecksum == c.Checksum &&
		shows(mr, c.Applied, c.Inventory)
}

func shows(mr *resourcesv1alpha1.ManagedResource, applied meta.ConditionChange, inventory uint64) bool {
	condition := meta.Conditions(mr.Status.Conditions).Get(resourcesv1alpha1.ResourcesApplied)
	return condition != nil && condition.Status == applied.Status && condition.Reason == applied.Reason && meta.InventoryDigest(mr.Status.Resources) == inventory
}

// Pending is the input of a run that ended while objects were being deleted.
//
// It saves reading and decoding the Secrets once more and, after a run that applied the new objects, reading the
// objects that no watch covers. It counts while each of the objects is held, so for a minute at most, and until a time
// at most.
type Pending struct {
	Generation int64
	// Applied and Inventory are what the run made of the status.
	Applied   meta.ConditionChange
	Inventory uint64
	Objects   []resourcesv1alpha1.ObjectReference
	Until     time.Time
}

// IsCurrent reports whether a ManagedResource is still what the run left, and it is not time to look anyway.
func (p *Pending) IsCurrent(mr *resourcesv1alpha1.ManagedResource, now time.Time) bool {
	return now.Before(p.Until) && p.Generation == mr.Generation && shows(mr, p.Applied, p.Inventory)
}

// Retry is what the next run after one that did not end well goes by.
type Retry struct {
	// Superseded counts the runs in a row that another form of the ManagedResource superseded, for the back-off.
	Superseded int
	// Failed is the content that could not be applied the last time.
	Failed string
	// Refused counts the runs in a row whose failure only other content can end. The next one begins at Until, if nothing
	// asks for it before.
	Refused int
	Until   time.Time
}

const (
	// firstRefused is how long after a refusal the next run begins; the pause doubles, up to lastRefused (MRB-52).
	firstRefused, lastRefused = 10 * time.Second, 10 * time.Minute
)

const (
	// firstRetry is how long after a superseded run the next one begins; the pause doubles up to 2^(mostRetries-1) times
	// that, some two seconds: a cache that lags need not be asked all the time.
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

// backOff is when the next run begins after a superseded one.
func (r Retry) backOff() time.Duration { return firstRetry << (r.Superseded - 1) }

// Change is how long it has been known that the content of a ManagedResource changed. It lasts until a run that ended
// well has read all that was told. A change that failed is measured from the next change on, which may be what repairs
// it.
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

// Pruned is what objects were deleted for last.
type Pruned struct {
	Generation int64
	// Requested is true if a user requested a full run since.
	Requested bool
}

// IsOutOfSync reports whether a run is needed, or under way that has not settled yet what it is for, though no object need
// be out of sync.
func (s State) IsOutOfSync() bool { return !s.Inbox.Empty() || s.Run != nil && !s.Run.Empty() }

// AtRest reports whether no run is due for this generation of the ManagedResource.
func (s State) AtRest(generation int64) bool {
	return s.Last != nil && s.Last.Generation == generation && !s.IsOutOfSync()
}

// Newer reports whether a watch has reported, since the run began, other versions of Secrets than those that the run read.
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
