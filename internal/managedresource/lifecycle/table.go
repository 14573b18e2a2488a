package lifecycle

import (
	"slices"
)

// transition is a row of the table. A row applies in its phases, to its events, while its condition holds. The first
// row that applies is used.
type transition struct {
	// in and on are the phases and the events; no phase means every phase.
	in []Phase
	on []kind
	// when is the condition; nil if there is none.
	when *condition
	// then changes the State, apart from the phase; nil changes nothing.
	then *effect
	// to is the next phase; stay means that the phase does not change.
	to Phase
	do []Action
}

const stay Phase = -1

// requests are the events that the Inbox records as requests for a run.
var requests = []kind{secretChanged, secretsMissed, periodEnded}

// table has the transitions of a ManagedResource, in the order in which they are tried.
var table = []transition{
	// Another ManagedResource with the same name starts with a new State, because it has other objects.
	{on: kinds(takenUp), when: replaced, then: forget, to: Unseen, do: actions(ForgetPrevious)},

	// Requests of users. operation=reconcile stays in force until a full run succeeds, although its annotation is
	// removed at once; migrate and restore stay as annotations, and count once.
	{on: kinds(operationFound), when: waitsForState, then: setAside, to: Paused, do: actions(Pause)},
	{in: in(Unseen, Due, Synced, AwaitingDeletion), on: kinds(operationFound), when: reconcileAsked, then: noteRequest,
		to: Due, do: actions(RemoveOperation)},
	{on: kinds(operationFound), when: reconcileAsked, then: noteRequest, to: stay, do: actions(RemoveOperation)},
	{in: in(Unseen, Due, Synced, AwaitingDeletion), on: kinds(operationFound), when: fullAskedAnew, then: noteRequest,
		to: Due},
	{on: kinds(operationFound), when: fullAskedAnew, then: noteRequest, to: stay},
	{on: kinds(operationFound), then: noteOperation, to: stay},
	{on: kinds(operationChanged), then: forgetOperation, to: stay},

	// Requests are added to the Inbox, not to a run that is in progress.
	{on: kinds(secretChanged), when: readAlready, to: stay},
	{on: kinds(secretChanged), when: reportedAlready, then: noteChange, to: stay, do: actions(Wake)},
	{on: kinds(periodEnded), when: askedAlready, to: stay},
	{in: in(Unseen, Due, Synced, AwaitingDeletion), on: requests, then: note, to: Due, do: actions(Wake)},
	{on: requests, then: note, to: stay, do: actions(Wake)},
	{on: kinds(specChanged), then: noteChange, to: stay},

	// Runs begin.
	{in: in(Synced), on: kinds(runBegins), when: nothingToDo, then: resetBackOff, to: stay, do: actions(Rest)},
	{in: in(AwaitingDeletion), on: kinds(runBegins), when: stillPending, to: stay, do: actions(AwaitDeletion)},
	{on: kinds(runBegins), then: takeOver, to: Running, do: actions(Begin)},

	{in: in(Running), on: kinds(objectsVisited), when: isFull, then: noteVisited, to: stay},
	{on: kinds(objectsVisited), to: stay},

	// Runs end.
	{in: in(Running), on: kinds(runSucceeded), when: nothingUnread, then: complete, to: Synced, do: actions(Measure)},
	{in: in(Running), on: kinds(runSucceeded), then: complete, to: Due, do: actions(Measure)},
	{in: in(Running), on: kinds(deletionsPending), when: nothingArrived, then: putBackPending, to: AwaitingDeletion},
	{in: in(Synced), on: kinds(deletionsPending), then: putBackPending, to: AwaitingDeletion},
	{in: in(Running, Due), on: kinds(deletionsPending), then: putBack, to: Due},
	{in: in(Running), on: kinds(runFailed), then: putBackFailed, to: Due},
	{in: in(Running), on: kinds(runSuperseded), then: putBackSuperseded, to: Due, do: actions(RequeueAfter)},
	{on: kinds(runSuperseded), then: countSuperseded, to: stay, do: actions(RequeueAfter)},
	{in: in(Running), on: kinds(runStopped), then: putBack, to: Due},
	{on: kinds(runSucceeded, deletionsPending, runFailed, runStopped), to: stay},

	// Objects are deleted.
	{on: kinds(pruneBegins), when: deletionAskedAnew, then: notePruned, to: stay, do: actions(RetryDeletions)},
	{on: kinds(pruneBegins), to: stay},
	{on: kinds(deletionBegins), then: unsettle, to: Deleting},
	{on: kinds(gone), then: forgetAll, to: Unseen, do: actions(Forget)},
	{on: kinds(takenUp), to: stay},
}

func in(phases ...Phase) []Phase          { return phases }
func kinds(kinds ...kind) []kind          { return kinds }
func actions(actions ...Action) []Action  { return actions }
func (t *transition) covers(p Phase) bool { return len(t.in) == 0 || slices.Contains(t.in, p) }

// Step returns the State after an event, and the commands that its caller must carry out.
func Step(s State, e Event, f Facts) (State, Commands) {
	if s.UID != f.UID {
		if endsRun(e.kind()) {
			return s, nil // It was about a former ManagedResource with this name.
		}
		s = State{UID: f.UID, Replaces: s.UID != "" || s.Replaces}
	}
	row := rowOf(s, e, f)
	next := s
	if row.then != nil {
		next = row.then.apply(s, e, f)
	}
	if row.to != stay {
		next.Phase = row.to
	}
	if next.Phase != AwaitingDeletion {
		next.Pending = nil
	}
	return next, commands(row.do, s, next)
}

// rowOf returns the first row of the table that applies to an event.
func rowOf(s State, e Event, f Facts) *transition {
	for i := range table {
		row := &table[i]
		if slices.Contains(row.on, e.kind()) && row.covers(s.Phase) && (row.when == nil || row.when.holds(s, e, f)) {
			return row
		}
	}
	// TestTable_IsComplete checks that each event has a row in each phase.
	panic("no row for " + e.kind().String() + " in phase " + s.Phase.String())
}

// endsRun reports whether an event is a result of a run, which may have begun for a former ManagedResource.
func endsRun(k kind) bool {
	return k == objectsVisited || k == runSucceeded || k == deletionsPending ||
		k == runFailed || k == runStopped
}

func commands(do []Action, before, after State) (commands Commands) {
	for _, action := range do {
		command := Command{Do: action}
		switch action {
		case RequeueAfter:
			command.After = after.Retry.backOff()
		case Measure:
			if before.Change.Since.IsZero() || !after.Change.Since.IsZero() {
				continue // Nothing changed, or not all changes were applied.
			}
			command.Since = before.Change.Since
		}
		commands = append(commands, command)
	}
	return commands
}
