package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// Facts are what holds when an event is taken.
type Facts struct {
	// UID and Generation are those of the ManagedResource that the event is about.
	UID        types.UID
	Generation int64
	Now        time.Time
}

// Event is something that happened to a ManagedResource.
type Event interface{ kind() kind }

type kind int

const (
	takenUp kind = iota
	operationFound
	operationChanged
	specChanged
	secretChanged
	secretsMissed
	fullRequested
	periodEnded
	runBegins
	contentRead
	writersFound
	objectsVisited
	runSucceeded
	deletionsPending
	runFailed
	runSuperseded
	runStopped
	pruneBegins
	deletionBegins
	swept
	gone
)

func (k kind) String() string {
	return [...]string{
		"TakenUp", "OperationFound", "OperationChanged", "SpecChanged", "SecretChanged", "SecretsMissed", "FullRequested", "PeriodEnded", "RunBegins",
		"ContentRead", "WritersFound", "ObjectsVisited", "RunSucceeded", "DeletionsPending", "RunFailed", "RunSuperseded", "RunStopped", "PruneBegins", "DeletionBegins", "Swept", "Gone",
	}[k]
}

type (
	// TakenUp is sent first whenever the queue hands the ManagedResource out.
	TakenUp struct{}
	// OperationFound is sent next, with the annotation operation.
	OperationFound struct{ Operation string }
	// OperationChanged tells that the annotation operation was set since the last run, which may have found the same value
	// before.
	OperationChanged struct{}
	// SpecChanged tells that a watch reported another generation.
	SpecChanged struct{}
	// SecretChanged tells that a watch reported that a Secret was written, or is gone if the version is empty.
	SecretChanged struct{ Name, Version string }
	// SecretsMissed tells that changes of Secrets may have been missed, in a gap of their watch.
	SecretsMissed struct{}
	// FullRequested tells that a user requested a full run.
	FullRequested struct{}
	// PeriodEnded tells that alwaysUpdate asks for writes at the end of a sync period, to all objects or to those that no
	// watch covers.
	PeriodEnded struct{ All bool }
	// RunBegins tells that a run for the present form of the ManagedResource is about to begin.
	RunBegins struct {
		// Reported is true if the status is what the last run made of it.
		Reported bool
		// InSync is true if every object is known to be in sync, and a watch would tell if it was not.
		InSync bool
		// Held is true if the run would find what the last one left: objects that are not gone, and nothing else to do.
		Held bool
	}
	// ContentRead tells which content the run read: Digest is the same for the same content.
	ContentRead struct{ Digest uint64 }
	// WritersFound tells who owns the content that the run read, or a later one.
	WritersFound struct {
		Writers []meta.Writer
		Later   bool
	}
	// ObjectsVisited tells that the run has visited these objects, and need not do so again if it does not end well.
	ObjectsVisited struct{ Objects map[plan.Key]struct{} }
	// RunSucceeded tells that the run did all that was to be done.
	RunSucceeded struct{ Completed Completed }
	// DeletionsPending tells that the run ended, with or without success, while objects were being deleted.
	DeletionsPending struct{ Pending Pending }
	// RunFailed tells that the run could not do all that was to be done. Content is what it applied, empty if that could
	// not be read. Refused is true if only other content, or a change of the objects, can end the failure.
	RunFailed struct {
		Content string
		Refused bool
	}
	// RunSuperseded tells that the ManagedResource asks for something else than when it was taken up.
	RunSuperseded struct{}
	// RunStopped tells that the run ended without a result.
	RunStopped struct{}
	// PruneBegins tells that objects are about to be deleted.
	PruneBegins struct{}
	// DeletionBegins tells that the ManagedResource is being deleted, or went to another class.
	DeletionBegins struct{}
	// Swept tells that a sync period has passed.
	Swept struct{}
	// Gone tells that the ManagedResource is gone, ignored, or not this instance's any more.
	Gone struct{}
)

func (TakenUp) kind() kind          { return takenUp }
func (OperationFound) kind() kind   { return operationFound }
func (OperationChanged) kind() kind { return operationChanged }
func (SpecChanged) kind() kind      { return specChanged }
func (SecretChanged) kind() kind    { return secretChanged }
func (SecretsMissed) kind() kind    { return secretsMissed }
func (FullRequested) kind() kind    { return fullRequested }
func (PeriodEnded) kind() kind      { return periodEnded }
func (RunBegins) kind() kind        { return runBegins }
func (ContentRead) kind() kind      { return contentRead }
func (WritersFound) kind() kind     { return writersFound }
func (ObjectsVisited) kind() kind   { return objectsVisited }
func (RunSucceeded) kind() kind     { return runSucceeded }
func (DeletionsPending) kind() kind { return deletionsPending }
func (RunFailed) kind() kind        { return runFailed }
func (RunSuperseded) kind() kind    { return runSuperseded }
func (RunStopped) kind() kind       { return runStopped }
func (PruneBegins) kind() kind      { return pruneBegins }
func (DeletionBegins) kind() kind   { return deletionBegins }
func (Swept) kind() kind            { return swept }
func (Gone) kind() kind             { return gone }

// Action is what a Command asks for.
type Action int

const (
	// Wake puts the ManagedResource into the queue.
	Wake Action = iota
	// ForgetPrevious forgets what is known of the objects of a former ManagedResource by the same name.
	ForgetPrevious
	// Pause does nothing, and looks again after a sync period.
	Pause
	// RemoveOperation removes the annotation operation.
	RemoveOperation
	// Rest ends the run, as there is nothing to do.
	Rest
	// AwaitDeletion ends the run, and looks again soon.
	AwaitDeletion
	// HoldBack ends the run, and begins another one after a pause.
	HoldBack
	// Begin goes on with the run.
	Begin
	// FindWriters asks who owns the content that the run read.
	FindWriters
	// TellFight tells who overwrites the content in turn.
	TellFight
	// Measure observes how long a change took that is applied now.
	Measure
	// RequeueAfter begins another run after a pause.
	RequeueAfter
	// RetryDeletions tries each deletion at once, also those that are being retried with a back-off.
	RetryDeletions
	// Forget drops the State.
	Forget
)

func (a Action) String() string {
	return [...]string{"Wake", "ForgetFormer", "Pause", "RemoveOperation", "Rest", "AwaitDeletion", "HoldBack", "Begin", "FindWriters", "TellFight", "Measure", "RequeueAfter", "RetryDeletions", "Forget"}[a]
}

// Command is what Step asks its caller to do.
type Command struct {
	Do Action
	// After is the pause of HoldBack and RequeueAfter.
	After time.Duration
	// Fights are what TellFight is about.
	Fights []meta.SourceFight
	// Since is when the change came that Measure is about.
	Since time.Time
}

// Commands are what Step asks its caller to do.
type Commands []Command

// Find returns the command for an action.
func (c Commands) Find(do Action) (Command, bool) {
	for _, command := range c {
		if command.Do == do {
			return command, true
		}
	}
	return Command{}, false
}

// Has reports whether an action is asked for.
func (c Commands) Has(do Action) bool {
	_, found := c.Find(do)
	return found
}
