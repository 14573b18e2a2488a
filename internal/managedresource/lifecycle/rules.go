package lifecycle

import (
	"maps"
	"time"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// condition restricts the events to which a row of the table applies.
type condition struct {
	text  string
	holds func(State, Event, Facts) bool
}

// effect changes the State for a row of the table, apart from the phase.
type effect struct {
	text  string
	apply func(State, Event, Facts) State
}

var (
	replaced = &condition{"it replaces another ManagedResource of the same name",
		func(s State, _ Event, _ Facts) bool { return s.Replaces }}

	waitsForState = &condition{"the operation is wait-for-state", func(_ State, e Event, _ Facts) bool {
		return e.(OperationFound).Operation == resourcesv1alpha1.OperationWaitForState
	}}
	reconcileAsked = &condition{"the operation is reconcile", func(_ State, e Event, _ Facts) bool {
		return e.(OperationFound).Operation == resourcesv1alpha1.OperationReconcile
	}}
	fullAskedAnew = &condition{"the operation is migrate or restore, and the last run did not find it",
		func(s State, e Event, _ Facts) bool {
			found := e.(OperationFound).Operation
			return found != s.Operation &&
				(found == resourcesv1alpha1.OperationMigrate || found == resourcesv1alpha1.OperationRestore)
		}}

	// A version is not new if the last successful run read it and no other version of the Secret was reported since.
	readAlready = &condition{"the last successful run read this version", func(s State, e Event, _ Facts) bool {
		secret := e.(SecretChanged)
		if _, found := s.reportedVersion(secret.Name); found || s.Last == nil {
			return false
		}
		read, found := s.Last.Secrets[secret.Name]
		return found && read == secret.Version
	}}
	// A deletion always counts as new, because deletions cannot be distinguished.
	reportedAlready = &condition{"this version was reported before, and the Secret is not deleted",
		func(s State, e Event, _ Facts) bool {
			secret := e.(SecretChanged)
			version, found := s.reportedVersion(secret.Name)
			return found && version == secret.Version && version != ""
		}}
	askedAlready = &condition{"nothing was applied yet, or the Inbox already requests the same",
		func(s State, e Event, _ Facts) bool {
			asked := s.Inbox
			if s.Run != nil {
				asked = s.Run.merged(s.Inbox)
			}
			return s.Last == nil || e.(PeriodEnded).All && asked.Full || !e.(PeriodEnded).All && asked.Periodic
		}}

	nothingToDo = &condition{"generation and status are those of the last run, and every object is in sync",
		func(s State, e Event, f Facts) bool {
			begins := e.(RunBegins)
			return s.AtRest(f.Generation) && begins.Reported && begins.InSync
		}}
	stillPending = &condition{"its objects still exist, because finalizers or grace periods hold them",
		func(_ State, e Event, _ Facts) bool { return e.(RunBegins).OnlyPending }}
	isFull = &condition{"the run is a full run", func(s State, _ Event, _ Facts) bool { return s.Run.Full }}

	nothingUnread = &condition{"nothing arrived during the run, except Secrets that the run read",
		func(s State, e Event, f Facts) bool { return complete.apply(s, e, f).Inbox.Empty() }}
	nothingArrived = &condition{"nothing arrived during the run",
		func(s State, _ Event, _ Facts) bool { return s.Inbox.Empty() }}

	deletionAskedAnew = &condition{"the generation has changed since the last time, or a full run was requested since",
		func(s State, _ Event, f Facts) bool {
			return s.Pruned.Requested || s.Pruned.Generation != f.Generation
		}}
)

// KnownVersions returns versions of a Secret that a watch reported, or that the last successful run read (MRT-4):
// older versions are outdated. It returns none after an interruption of the watch, because a restored source has
// older versions.
func (s State) KnownVersions(name string) (versions []string) {
	if s.Inbox.SecretsMissed || s.Run != nil && s.Run.SecretsMissed {
		return nil
	}
	if reported, found := s.reportedVersion(name); found {
		versions = append(versions, reported)
	}
	if s.Last != nil && s.Last.Secrets[name] != "" {
		versions = append(versions, s.Last.Secrets[name])
	}
	return versions
}

// reportedVersion returns the last version of a Secret that a watch reported, unless a successful run has read it
// since.
func (s State) reportedVersion(name string) (version string, found bool) {
	if version, found = s.Inbox.Secrets[name]; !found && s.Run != nil {
		version, found = s.Run.Secrets[name]
	}
	return version, found
}

var (
	forget = &effect{"the State of the former ManagedResource is dropped",
		func(s State, _ Event, _ Facts) State { return State{UID: s.UID} }}
	forgetAll = &effect{"everything is dropped", func(State, Event, Facts) State { return State{} }}

	noteRequest = &effect{"the request for a full run is added to the Inbox", func(s State, e Event, _ Facts) State {
		s.Operation = e.(OperationFound).Operation
		return s.requested()
	}}
	noteOperation = &effect{"the operation is remembered",
		func(s State, e Event, _ Facts) State { s.Operation = e.(OperationFound).Operation; return s }}
	forgetOperation = &effect{"the operation is forgotten",
		func(s State, _ Event, _ Facts) State { s.Operation = ""; return s }}
	setAside = &effect{"the events of an interrupted run are put back, and a run is requested",
		func(s State, e Event, f Facts) State {
			s.Operation = e.(OperationFound).Operation
			return s.putBack()
		}}

	note = &effect{"the event is added to the Inbox", func(s State, e Event, f Facts) State {
		switch e := e.(type) {
		case SecretChanged:
			s.Change, s.SourceChanged = s.Change.comes(0, f.Now), true
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
		s.Change, s.SourceChanged = s.Change.comes(generation, f.Now), true
		return s
	}}

	resetBackOff = &effect{"the back-off is reset",
		func(s State, _ Event, _ Facts) State { s.Retry.Superseded = 0; return s }}
	takeOver = &effect{"the run takes the Inbox, and the events that an earlier run did not put back",
		func(s State, e Event, _ Facts) State {
			if s.Run != nil {
				s = s.putBack()
			}
			s.Run, s.Inbox = &Run{Inbox: s.Inbox, Last: s.Last, Failed: s.Retry.Failed, Known: e.(RunBegins).Known}, Inbox{}
			s.SourceChanged = false
			return s
		}}
	noteVisited = &effect{"the next run need not visit these objects", func(s State, e Event, _ Facts) State {
		run := *s.Run
		run.Visited = e.(ObjectsVisited).Objects
		s.Run = &run
		return s
	}}

	complete = &effect{"the run's events are dropped, and so are changes of Secrets that the run read",
		func(s State, e Event, f Facts) State {
			completed := e.(RunSucceeded).Completed
			completed.Applied.Message = "" // It may be long, and is not needed.
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
	putBack = &effect{"the run's events are put back, and a run is requested",
		func(s State, _ Event, _ Facts) State { return s.putBack() }}
	putBackPending = &effect{"the run's events are put back, a run is requested, and the pending deletions are remembered",
		func(s State, e Event, _ Facts) State {
			pending := e.(DeletionsPending).Pending
			s = s.putBack()
			s.Pending = &pending
			return s
		}}
	putBackFailed = &effect{"the run's events are put back, a run is requested, the content is remembered, and after a refusal the pause grows",
		func(s State, e Event, f Facts) State {
			if content := e.(RunFailed).Content; content != "" {
				s.Retry.Failed = content
			}
			if s.Change.Failed = true; e.(RunFailed).Refused {
				s.Retry = s.Retry.refused(f.Now)
			} else {
				s.Retry.Refused, s.Retry.Until = 0, time.Time{}
			}
			return s.putBack()
		}}
	putBackSuperseded = &effect{"the run's events are put back, a run is requested, and the back-off grows",
		func(s State, _ Event, _ Facts) State {
			s.Retry = s.Retry.superseded()
			return s.putBack()
		}}
	countSuperseded = &effect{"the back-off grows",
		func(s State, _ Event, _ Facts) State { s.Retry = s.Retry.superseded(); return s }}

	notePruned = &effect{"the generation is remembered",
		func(s State, _ Event, f Facts) State { s.Pruned = Pruned{Generation: f.Generation}; return s }}
	unsettle = &effect{"the events of an interrupted run are put back, a full run is requested, and the result of the last run is dropped",
		func(s State, _ Event, _ Facts) State {
			s = s.putBack()
			s.Last, s.Inbox.Full, s.Inbox.Visited = nil, true, nil
			return s
		}}
)

// requested records that a user requested a full run: the next run visits every object, and retries all deletions.
func (s State) requested() State {
	s.Inbox.Full, s.Inbox.Requested, s.Inbox.Visited = true, true, nil
	s.Pruned.Requested = true
	return s
}

// putBack returns the Inbox of the run to the State, and requests another run.
func (s State) putBack() State {
	if s.Run != nil {
		s.Inbox, s.Run = s.Run.merged(s.Inbox), nil
	}
	s.Inbox.Recheck = true
	return s
}
