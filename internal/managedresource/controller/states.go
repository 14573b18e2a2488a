package controller

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/lifecycle"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
)

// states stores the State of each ManagedResource, and is the only place that does. It is safe for concurrent use.
//
// Invariant: a Secret that a run is going to read is in readers before it is read, so that each change is either read
// or reported. The cache of ManagedResources is not used to find the readers of a Secret, because it may lag.
type states struct {
	// clock measures how long changes take; if it is nil, they are not measured.
	clock clock.PassiveClock

	mu      sync.Mutex
	byOwner map[objects.Owner]lifecycle.State
	// secrets are the names of the Secrets that the last run was going to read; readers is the reverse.
	secrets map[objects.Owner][]string
	readers map[types.NamespacedName]map[objects.Owner]struct{}
	// pace has, for each ManagedResource that changed, the token bucket of its runs.
	pace map[objects.Owner]*rate.Limiter
}

const (
	// sourceBurst is the number of runs that changes of the source cause without delay; then there is one every
	// sourcePause (MRB-56).
	sourceBurst = 20
	sourcePause = 10 * time.Second
)

// waitForSource returns the time to wait before a run that a change of the specification or of a Secret causes, so
// that a controller that rewrites them without end does not cause runs without end (MRB-56). A repeated run, and one
// that a user requested, do not wait.
func (s *states) waitForSource(mr *resourcesv1alpha1.ManagedResource) time.Duration {
	known := s.get(mr)
	if !known.SourceChanged || known.Inbox.Requested {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limiter, found := s.pace[steps.OwnerOf(mr)]
	if !found {
		limiter = rate.NewLimiter(rate.Every(sourcePause), sourceBurst)
		s.pace[steps.OwnerOf(mr)] = limiter
	}
	now := s.clock.Now()
	reservation := limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// step applies an event of a run for a ManagedResource, or of its watch.
func (s *states) step(mr *resourcesv1alpha1.ManagedResource, event lifecycle.Event) lifecycle.Commands {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepLocked(steps.OwnerOf(mr), event, lifecycle.Facts{UID: mr.UID, Generation: mr.Generation})
}

// begin applies the event that begins a run, which is going to read the Secrets that the ManagedResource names, and
// returns the input of the run; nil if there is nothing to do.
func (s *states) begin(mr *resourcesv1alpha1.ManagedResource,
	event lifecycle.RunBegins) (*lifecycle.Run, lifecycle.Commands) {
	names := make([]string, 0, len(mr.Spec.SecretRefs))
	for _, ref := range mr.Spec.SecretRefs {
		names = append(names, ref.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	owner := steps.OwnerOf(mr)
	event.Known = s.knownLocked(mr, names)
	commands := s.stepLocked(owner, event, lifecycle.Facts{UID: mr.UID, Generation: mr.Generation})
	s.readsLocked(owner, names)
	return s.byOwner[owner].Run, commands
}

// knownLocked returns the known versions of Secrets by name (see KnownVersions), from the State of the
// ManagedResource and of the other readers of the Secrets.
func (s *states) knownLocked(mr *resourcesv1alpha1.ManagedResource, names []string) map[string][]string {
	owner, versions := steps.OwnerOf(mr), make(map[string][]string, len(names))
	own := s.byOwner[owner]
	for _, name := range names {
		if own.UID == mr.UID {
			versions[name] = own.KnownVersions(name)
		}
		for reader := range s.readers[types.NamespacedName{Namespace: mr.Namespace, Name: name}] {
			if reader != owner {
				versions[name] = append(versions[name], s.byOwner[reader].KnownVersions(name)...)
			}
		}
	}
	return versions
}

// stepKnown applies an event of a ManagedResource that has a State, whatever its UID.
func (s *states) stepKnown(owner objects.Owner, event lifecycle.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepKnownLocked(owner, event)
}

func (s *states) stepKnownLocked(owner objects.Owner, event lifecycle.Event) lifecycle.Commands {
	known, found := s.byOwner[owner]
	if !found {
		return nil
	}
	return s.stepLocked(owner, event, lifecycle.Facts{UID: known.UID})
}

// stepPresent applies an event of a ManagedResource if the State is of the same UID. A late event may be about a
// former ManagedResource of that name: then the state of the present one stays, because without it changes of its
// Secrets would enqueue nothing.
func (s *states) stepPresent(mr *resourcesv1alpha1.ManagedResource, event lifecycle.Event) lifecycle.Commands {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.byOwner[steps.OwnerOf(mr)]; !found || known.UID != mr.UID {
		return nil
	}
	return s.stepLocked(steps.OwnerOf(mr), event, lifecycle.Facts{UID: mr.UID, Generation: mr.Generation})
}

func (s *states) stepLocked(owner objects.Owner, event lifecycle.Event, facts lifecycle.Facts) lifecycle.Commands {
	if s.clock != nil {
		facts.Now = s.clock.Now()
	}
	before := s.byOwner[owner]
	next, commands := lifecycle.Step(before, event, facts)
	if commands.Has(lifecycle.Forget) {
		s.readsLocked(owner, nil)
		delete(s.byOwner, owner)
		delete(s.pace, owner)
		return commands
	}
	if next.UID != before.UID {
		s.readsLocked(owner, nil)
	}
	if s.byOwner == nil {
		s.byOwner, s.pace = map[objects.Owner]lifecycle.State{}, map[objects.Owner]*rate.Limiter{}
	}
	s.byOwner[owner] = next
	return commands
}

// get returns the State of a ManagedResource, the zero State if there is none. It does not create one, because its
// caller may be late.
func (s *states) get(mr *resourcesv1alpha1.ManagedResource) lifecycle.State {
	if known := s.of(steps.OwnerOf(mr)); known.UID == mr.UID {
		return known
	}
	return lifecycle.State{}
}

// seesPending records that the status has a condition with a message about a deletion that waits, and returns for how
// long this process has observed it without a gap.
func (s *states) seesPending(mr *resourcesv1alpha1.ManagedResource, message string, gap time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, found := s.byOwner[steps.OwnerOf(mr)]
	if !found || known.UID != mr.UID {
		return 0
	}
	now := s.clock.Now()
	known.MassDeletion = known.MassDeletion.SeenAgain(message, now, gap)
	s.byOwner[steps.OwnerOf(mr)] = known
	return now.Sub(known.MassDeletion.Since)
}

// newer reports whether a watch has reported, since the present run for a ManagedResource began, other versions of
// Secrets than those that the run read.
func (s *states) newer(mr *resourcesv1alpha1.ManagedResource, read map[string]string) bool {
	known := s.get(mr)
	return known.Run == nil || known.Newer(read)
}

// of returns the State of a ManagedResource, whatever its UID.
func (s *states) of(owner objects.Owner) lifecycle.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byOwner[owner]
}

// contradicts reports whether a ManagedResource without a due run differs from the result of the last successful run.
func (s *states) contradicts(mr *resourcesv1alpha1.ManagedResource) bool {
	known := s.get(mr)
	return known.AtRest(mr.Generation) && !known.Last.Reported(mr) // A long inventory takes time: outside the lock.
}

// applied returns the ManagedResources that were applied completely.
func (s *states) applied() []objects.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := make([]objects.Owner, 0, len(s.byOwner))
	for owner, known := range s.byOwner {
		if known.Last != nil {
			owners = append(owners, owner)
		}
	}
	return owners
}

// readsLocked records the names of the Secrets that a run is going to read.
func (s *states) readsLocked(owner objects.Owner, names []string) {
	for _, name := range s.secrets[owner] {
		key := types.NamespacedName{Namespace: owner.Namespace, Name: name}
		delete(s.readers[key], owner)
		if len(s.readers[key]) == 0 {
			delete(s.readers, key)
		}
	}
	if len(names) == 0 {
		delete(s.secrets, owner)
		return
	}
	if s.readers == nil {
		s.secrets, s.readers = map[objects.Owner][]string{}, map[types.NamespacedName]map[objects.Owner]struct{}{}
	}
	s.secrets[owner] = names
	for _, name := range names {
		key := types.NamespacedName{Namespace: owner.Namespace, Name: name}
		if s.readers[key] == nil {
			s.readers[key] = map[objects.Owner]struct{}{}
		}
		s.readers[key][owner] = struct{}{}
	}
}

// secretChanged passes the version of a Secret, empty if it is gone, to the ManagedResources that read it, and
// returns the ones to enqueue.
func (s *states) secretChanged(secret types.NamespacedName, version string) []objects.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	var owners []objects.Owner
	for owner := range s.readers[secret] {
		if s.stepKnownLocked(owner, lifecycle.SecretChanged{Name: secret.Name, Version: version}).Has(lifecycle.Wake) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// secretsMissed records for every ManagedResource that changes of Secrets may have been missed, and returns the ones
// to enqueue.
func (s *states) secretsMissed() []objects.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	owners := make([]objects.Owner, 0, len(s.byOwner))
	for owner := range s.byOwner {
		if s.stepKnownLocked(owner, lifecycle.SecretsMissed{}).Has(lifecycle.Wake) {
			owners = append(owners, owner)
		}
	}
	return owners
}

func (s *states) forget(owner objects.Owner) { s.stepKnown(owner, lifecycle.Gone{}) }
