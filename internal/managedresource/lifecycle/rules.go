package lifecycle

import (
	"maps"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// condition is when a row of the table holds.
type condition struct {
	text  string
	holds func(State, Event, Facts) bool
}

// effect is how a row of the table changes what is remembered, apart from the phase.
type effect struct {
	text  string
	apply func(State, Event, Facts) State
}

var (
	replaced = &condition{"it replaces another ManagedResource by its name", func(s State, _ Event, _ Facts) bool { return s.Replaces }}

	waitsForState = &condition{"it is wait-for-state", func(_ State, e Event, _ Facts) bool {
		return e.(OperationFound).Operation == resourcesv1alpha1.OperationWaitForState
	}}
	reconcileAsked = &condition{"it is reconcile", func(_ State, e Event, _ Facts) bool {
		return e.(OperationFound).Operation == resourcesv1alpha1.OperationReconcile
	}}
	fullAskedAnew = &condition{"it is migrate or restore, which the last run did not find", func(s State, e Event, _ Facts) bool {
		found := e.(OperationFound).Operation
		return found != s.Operation && (found == resourcesv1alpha1.OperationMigrate || found == resourcesv1alpha1.OperationRestore)
	}}

	// A version that nobody else was told of since is no news if the last run that ended well read it.
	readAlready = &condition{"the last run that ended well read this version", func(s State, e Event, _ Facts) bool {
		secret := e.(SecretChanged)
		if _, told := s.told(secret.Name); told || s.Last == nil {
			return false
		}
		read, found := s.Last.Secrets[secret.Name]
		return found && read == secret.Version
	}}
	// One deletion is like another, so that a deletion is always news.
	toldAlready = &condition{"this version was told already, and is not a deletion", func(s State, e Event, _ Facts) bool {
		secret := e.(SecretChanged)
		version, told := s.told(secret.Name)
		return told && version == secret.Version && version != ""
	}}
	askedAlready = &condition{"nothing was applied yet, or the same was asked for already", func(s State, e Event, _ Facts) bool {
		asked := s.Inbox
		if s.Run != nil {
			asked = s.Run.merged(s.Inbox)
		}
		return s.Last == nil || e.(PeriodEnded).All && asked.Full || !e.(PeriodEnded).All && asked.Periodic
	}}

	nothingToDo = &condition{"the generation and the status are what the last run made, and every object is in sync", func(s State, e Event, f Facts) bool {
		begins := e.(RunBegins)
		return s.AtRest(f.Generation) && begins.Reported && begins.InSync
	}}
	stillHeld = &condition{"its objects are still held", func(_ State, e Event, _ Facts) bool { return e.(RunBegins).Held }}
	isPaced   = &condition{"other content is to be applied which several managers overwrite in turn, it is not time for that yet, and nobody asked for a run",
		func(s State, _ Event, f Facts) bool {
			changed := len(s.Inbox.Secrets) > 0 || s.Last != nil && s.Last.Generation != f.Generation
			return changed && !s.Inbox.Requested && s.Alternation.pause(f.Now) > 0
		}}
	isAsBefore = &condition{"the content is the one that was read before", func(s State, e Event, f Facts) bool {
		return !s.Alternation.isNews(s.lastContent(), e.(ContentRead).Digest, f.Now)
	}}
	asksWhoWrote = &condition{"several managers overwrite the content in turn, or may do so, as it has come back", func(s State, e Event, f Facts) bool {
		return noteContent.apply(s, e, f).Alternation.asksWhoWrote(f.Now)
	}}
	isUntold = &condition{"they show a fight that was not told of lately", func(s State, e Event, f Facts) bool {
		return noteWriters.apply(s, e, f).Alternation.isUntold(f.Now)
	}}
	hasNoAlternation = &condition{"the content has not changed lately", func(s State, _ Event, _ Facts) bool { return s.Alternation == nil }}
	isQuiet          = &condition{"the content has not changed for ten minutes", func(s State, _ Event, f Facts) bool { return s.Alternation.isOver(f.Now) }}

	isFull = &condition{"the run took a wish for a full run over", func(s State, _ Event, _ Facts) bool { return s.Run.Full }}

	nothingUnread  = &condition{"nothing arrived but Secrets that the run read", func(s State, e Event, f Facts) bool { return settle.apply(s, e, f).Inbox.Empty() }}
	nothingArrived = &condition{"nothing arrived", func(s State, _ Event, _ Facts) bool { return s.Inbox.Empty() }}

	deletionAskedAnew = &condition{"the generation is another one than the last time, or somebody asked for a full run since", func(s State, _ Event, f Facts) bool {
		return s.Pruned.Requested || s.Pruned.Generation != f.Generation
	}}
)

// lastContent is the content of the last run that ended well, 0 if none did.
func (s State) lastContent() uint64 {
	if s.Last == nil {
		return 0
	}
	return s.Last.Content
}

// told returns the version of a Secret that a watch told of last, if no run that ended well has settled that.
func (s State) told(name string) (version string, found bool) {
	if version, found = s.Inbox.Secrets[name]; !found && s.Run != nil {
		version, found = s.Run.Secrets[name]
	}
	return version, found
}

var (
	forget    = &effect{"what is remembered of the former one is dropped", func(s State, _ Event, _ Facts) State { return State{UID: s.UID} }}
	forgetAll = &effect{"everything is dropped", func(State, Event, Facts) State { return State{} }}

	noteRequest = &effect{"a full run by somebody's wish is noted in the Inbox", func(s State, e Event, _ Facts) State {
		s.Operation = e.(OperationFound).Operation
		return s.requested()
	}}
	noteOperation   = &effect{"the operation is remembered", func(s State, e Event, _ Facts) State { s.Operation = e.(OperationFound).Operation; return s }}
	forgetOperation = &effect{"the operation is forgotten", func(s State, _ Event, _ Facts) State { s.Operation = ""; return s }}
	setAside        = &effect{"what a run took over is put back, and a run is asked for", func(s State, e Event, f Facts) State {
		s.Operation = e.(OperationFound).Operation
		return s.putBack()
	}}

	note = &effect{"it is noted in the Inbox", func(s State, e Event, f Facts) State {
		switch e := e.(type) {
		case FullRequested:
			return s.requested()
		case SecretChanged:
			s.Change = s.Change.comes(0, f.Now)
			s.Inbox.Secrets = with(s.Inbox.Secrets, e.Name, e.Version)
			s.Inbox.SecretDeleted = s.Inbox.SecretDeleted || e.Version == ""
		case SecretsMissed:
			s.Inbox.SecretsMissed = true
		case PeriodEnded:
			if e.All {
				s.Inbox.Full, s.Inbox.Visited = true, nil
			} else {
				s.Inbox.Periodic = true
			}
		}
		return s
	}}
	noteChange = &effect{"the time of the change is remembered", func(s State, e Event, f Facts) State {
		generation := int64(0)
		if e.kind() == specChanged {
			generation = f.Generation
		}
		s.Change = s.Change.comes(generation, f.Now)
		return s
	}}

	resetBackOff = &effect{"the back-off is reset", func(s State, _ Event, _ Facts) State { s.Retry.Superseded = 0; return s }}
	takeOver     = &effect{"the run takes the Inbox over, with what a former run did not put back", func(s State, _ Event, _ Facts) State {
		if s.Run != nil {
			s = s.putBack()
		}
		s.Run, s.Inbox = &Run{Inbox: s.Inbox, Last: s.Last, Failed: s.Retry.Failed}, Inbox{}
		return s
	}}
	noteContent = &effect{"the content is remembered", func(s State, e Event, f Facts) State {
		s.Alternation = s.Alternation.after(s.lastContent(), e.(ContentRead).Digest, f.Now)
		return s
	}}
	noteWriters = &effect{"the writers are remembered", func(s State, e Event, f Facts) State {
		found := e.(WritersFound)
		s.Alternation = s.Alternation.looksAt(found.Writers, found.Later, f.Now)
		return s
	}}
	noteTold = &effect{"the writers are remembered, and that they were told of", func(s State, e Event, f Facts) State {
		s = noteWriters.apply(s, e, f)
		told := *s.Alternation
		told.told = f.Now
		s.Alternation = &told
		return s
	}}
	forgetAlternation = &effect{"how the content changed is forgotten", func(s State, _ Event, _ Facts) State { s.Alternation = nil; return s }}
	noteVisited       = &effect{"the next run need not visit these objects", func(s State, e Event, _ Facts) State {
		run := *s.Run
		run.Visited = e.(ObjectsVisited).Objects
		s.Run = &run
		return s
	}}

	settle = &effect{"what the run took over is dropped, and of what arrived the Secrets that it read", func(s State, e Event, f Facts) State {
		completed := e.(RunSucceeded).Completed
		completed.Applied.Message = "" // It may be long, and nobody asks for it.
		s.Last, s.Run, s.Retry = &completed, nil, Retry{}
		if len(s.Inbox.Secrets) > 0 {
			s.Inbox.Secrets = maps.Clone(s.Inbox.Secrets)
			maps.DeleteFunc(s.Inbox.Secrets, func(name, version string) bool {
				read, found := completed.Secrets[name]
				return !found || read == version
			})
		}
		if len(s.Inbox.Secrets) == 0 && f.Generation >= s.Change.Generation {
			s.Change = Change{}
		}
		return s
	}}
	putBack        = &effect{"what the run took over is put back, and a run is asked for", func(s State, _ Event, _ Facts) State { return s.putBack() }}
	putBackPending = &effect{"what the run took over is put back, a run is asked for, and what is pending is remembered", func(s State, e Event, _ Facts) State {
		pending := e.(DeletionsPending).Pending
		s = s.putBack()
		s.Pending = &pending
		return s
	}}
	putBackFailed = &effect{"what the run took over is put back, a run is asked for, and the content is remembered", func(s State, e Event, _ Facts) State {
		if content := e.(RunFailed).Content; content != "" {
			s.Retry.Failed = content
		}
		s.Change.Failed = true
		return s.putBack()
	}}
	putBackSuperseded = &effect{"what the run took over is put back, a run is asked for, and the back-off grows", func(s State, _ Event, _ Facts) State {
		s.Retry = s.Retry.superseded()
		return s.putBack()
	}}
	countSuperseded = &effect{"the back-off grows", func(s State, _ Event, _ Facts) State { s.Retry = s.Retry.superseded(); return s }}

	notePruned = &effect{"the generation is remembered", func(s State, _ Event, f Facts) State { s.Pruned = Pruned{Generation: f.Generation}; return s }}
	unsettle   = &effect{"what a run took over is put back, a full run is asked for, and how the last run ended is dropped", func(s State, _ Event, _ Facts) State {
		s = s.putBack()
		s.Last, s.Inbox.Full, s.Inbox.Visited = nil, true, nil
		return s
	}}
)

// requested notes somebody's wish: every object is visited after it, and each deletion tried.
func (s State) requested() State {
	s.Inbox.Full, s.Inbox.Requested, s.Inbox.Visited = true, true, nil
	s.Pruned.Requested = true
	return s
}

// putBack returns to the Inbox what a run took over, and asks for another run.
func (s State) putBack() State {
	if s.Run != nil {
		s.Inbox, s.Run = s.Run.merged(s.Inbox), nil
	}
	s.Inbox.Recheck = true
	return s
}
