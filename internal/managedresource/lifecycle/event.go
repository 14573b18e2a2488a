package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

// Facts are the ManagedResource and the time of an event.
type Facts struct {
	// UID and Generation belong to the ManagedResource that the event is about.
	UID        types.UID
	Generation int64
	Now        time.Time
}

// Event is an input of Step: something that happened to a ManagedResource.
type Event interface{ kind() kind }

type kind int

const (
	takenUp kind = iota
	operationFound
	operationChanged
	specChanged
	secretChanged
	secretsMissed
	periodEnded
	runBegins
	objectsVisited
	runSucceeded
	deletionsPending
	runFailed
	runSuperseded
	runStopped
	pruneBegins
	deletionBegins
	gone
)

func (k kind) String() string {
	return [...]string{
		"TakenUp", "OperationFound", "OperationChanged", "SpecChanged", "SecretChanged", "SecretsMissed", "PeriodEnded",
		"RunBegins",
		"ObjectsVisited", "RunSucceeded", "DeletionsPending", "RunFailed", "RunSuperseded",
		"RunStopped", "PruneBegins", "DeletionBegins", "Gone",
	}[k]
}

type (
	// TakenUp is sent first, when the queue returns the ManagedResource.
	TakenUp struct{}
	// OperationFound is sent next, with the value of the operation annotation.
	OperationFound struct{ Operation string }
	// OperationChanged means that the operation annotation was set since the last run. The last run may have found
	// the same value.
	OperationChanged struct{}
	// SpecChanged means that a watch reported a new generation.
	SpecChanged struct{}
	// SecretChanged means that a watch reported a new version of a Secret, or its deletion if Version is empty.
	SecretChanged struct{ Name, Version string }
	// SecretsMissed means that changes of Secrets may have been missed, because their watch was interrupted.
	SecretsMissed struct{}
	// PeriodEnded means that alwaysUpdate requires writes at the end of a sync period: to all objects, or to the
	// objects that no watch covers.
	PeriodEnded struct{ All bool }
	// RunBegins means that a run for the current version of the ManagedResource is about to begin.
	RunBegins struct {
		// Reported is true if the status still shows the result of the last run.
		Reported bool
		// InSync is true if every object is known to be in sync, and a watch would report any change.
		InSync bool
		// OnlyPending is true if the only remaining work of the run is to wait for objects that are being deleted.
		OnlyPending bool
		// Known has, by name, the known versions of the Secrets of the run, which must not read older ones.
		Known map[string][]string
	}
	// ObjectsVisited means that the run has visited these objects. If the run fails, the next one need not visit them
	// again.
	ObjectsVisited struct{ Objects map[objects.ID]struct{} }
	// RunSucceeded means that the run finished all of its work.
	RunSucceeded struct{ Completed Completed }
	// DeletionsPending means that the run ended, with or without success, while objects were being deleted.
	DeletionsPending struct{ Pending Pending }
	// RunFailed means that the run could not finish its work. Content is the content that it should have applied,
	// empty if this could not be read. Refused is true if only different content, or a change of the objects, can end
	// the failure.
	RunFailed struct {
		Content string
		Refused bool
	}
	// RunSuperseded means that the ManagedResource has changed since the run read it.
	RunSuperseded struct{}
	// RunStopped means that the run ended without a result.
	RunStopped struct{}
	// PruneBegins means that objects are about to be deleted.
	PruneBegins struct{}
	// DeletionBegins means that the ManagedResource is being deleted, or has moved to another class.
	DeletionBegins struct{}
	// Gone means that the ManagedResource is deleted, ignored, or no longer in the class of this instance.
	Gone struct{}
)

func (TakenUp) kind() kind          { return takenUp }
func (OperationFound) kind() kind   { return operationFound }
func (OperationChanged) kind() kind { return operationChanged }
func (SpecChanged) kind() kind      { return specChanged }
func (SecretChanged) kind() kind    { return secretChanged }
func (SecretsMissed) kind() kind    { return secretsMissed }
func (PeriodEnded) kind() kind      { return periodEnded }
func (RunBegins) kind() kind        { return runBegins }
func (ObjectsVisited) kind() kind   { return objectsVisited }
func (RunSucceeded) kind() kind     { return runSucceeded }
func (DeletionsPending) kind() kind { return deletionsPending }
func (RunFailed) kind() kind        { return runFailed }
func (RunSuperseded) kind() kind    { return runSuperseded }
func (RunStopped) kind() kind       { return runStopped }
func (PruneBegins) kind() kind      { return pruneBegins }
func (DeletionBegins) kind() kind   { return deletionBegins }
func (Gone) kind() kind             { return gone }

// Action is an action that a Command requests.
type Action int

const (
	// Wake puts the ManagedResource into the queue.
	Wake Action = iota
	// ForgetPrevious drops the state of the objects of a former ManagedResource with the same name.
	ForgetPrevious
	// Pause skips the run, and checks again after a sync period.
	Pause
	// RemoveOperation removes the annotation operation.
	RemoveOperation
	// Rest ends the run, because there is nothing to do.
	Rest
	// AwaitDeletion ends the run, and checks again soon.
	AwaitDeletion
	// Begin continues with the run.
	Begin
	// Measure records the time that a change took to be applied.
	Measure
	// RequeueAfter starts another run after a pause.
	RequeueAfter
	// RetryDeletions retries all deletions at once, even during their back-off.
	RetryDeletions
	// Forget drops the State.
	Forget
)

func (a Action) String() string {
	return [...]string{"Wake", "ForgetPrevious", "Pause", "RemoveOperation", "Rest", "AwaitDeletion", "Begin",
		"Measure", "RequeueAfter", "RetryDeletions", "Forget"}[a]
}

// Command is an action that the caller of Step must carry out.
type Command struct {
	Do Action
	// After is the pause of RequeueAfter.
	After time.Duration
	// Since is the time of the change that Measure observes.
	Since time.Time
}

// Commands are the actions that the caller of Step must carry out, in this order.
type Commands []Command

// Find returns the command for an action; false if there is none.
func (c Commands) Find(do Action) (Command, bool) {
	for _, command := range c {
		if command.Do == do {
			return command, true
		}
	}
	return Command{}, false
}

// Has reports whether the commands include an action.
func (c Commands) Has(do Action) bool {
	_, found := c.Find(do)
	return found
}
