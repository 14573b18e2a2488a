package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

const (
	// readsPerRun is the number of checks of the cache by a run while it writes. A check for each object is not
	// needed: the next run corrects superfluous writes.
	readsPerRun = 32
	// readEvery is the time after which the next write checks the cache in any case.
	readEvery = time.Second
	// liveFor is the time for which an answer of the API server counts: the watches may be late, as in a process that
	// stood still and does not lead any more.
	liveFor = 2 * time.Second
)

// certainty is the proof that a run needs before a step.
type certainty int

const (
	// Cheap is for writes, and costs no request: the cache is read now and then. A write from an older Secret does no
	// harm: the next run follows at once, and corrects it.
	Cheap certainty = iota
	// Cached is for irreversible steps directly after a Live check, and costs no request: it reads the cache, and
	// checks whether a watch reported newer Secrets.
	Cached
	// Live is for deletions: it asks the API server, unless its last answer still counts (liveFor).
	Live
)

// lease checks that a run is still current: its ManagedResource has the same task (MRT-7, MRA-4), and nothing newer is
// known of the Secrets that the run was planned from. It is safe for concurrent use.
//
// Invariant: seen is the resource version of a form that has the task of mr, and proves nothing about any other form.
// Once the lease has ended it stays so.
type lease struct {
	*Reconciler
	mr *resourcesv1alpha1.ManagedResource
	// inputs are the Secrets; a run that deletes everything has none.
	inputs inputs
	// together makes sure, once, that the ManagedResource had all of the inputs at one moment.
	together func() error

	mu     sync.Mutex
	seen   string
	ended  bool
	writes int
	readAt time.Time
	// asked is the time of the last request to the API server; zero without one. first is the first proof for a
	// deletion, proof the present one.
	asked        time.Time
	first, proof func() error
}

// newLease returns a lease of a run for a ManagedResource that was planned from inputs.
func (r *Reconciler) newLease(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, inputs inputs) *lease {
	l := &lease{Reconciler: r, mr: mr, inputs: inputs}
	l.together = once(ctx, func() error { return inputs.confirm(ctx) })
	return l
}

// Check returns errSuperseded if the run is no longer current, and another error if that cannot be checked.
func (l *lease) Check(ctx context.Context, how certainty) error {
	switch how {
	case Live:
		return l.live(ctx)
	case Cached:
		if l.inputs.newer(l.mr) {
			return errSuperseded
		}
		return l.look(ctx)
	}
	if err := l.together(); err != nil {
		return err
	}
	if !l.isDue() {
		return nil
	}
	return l.look(ctx)
}

// isDue reports whether a write must check the cache first.
func (l *lease) isDue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes++
	now := l.Clock.Now()
	due := l.ended || l.writes > len(l.mr.Status.Resources)/readsPerRun || now.Sub(l.readAt) >= readEvery
	if due {
		l.writes, l.readAt = 0, now
	}
	return due
}

func (l *lease) look(ctx context.Context) error {
	latest, err := l.Statuses.Get(ctx, ownerOf(l.mr))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended:
	case err != nil:
		l.ended = true
	case l.seen == latest.ResourceVersion:
	case l.Class.SameDesiredState(l.mr, latest) && !waitsForState(latest):
		l.seen = latest.ResourceVersion
	default:
		l.ended = true
	}
	if l.ended {
		return errSuperseded
	}
	return nil
}

// announced records the form that the run itself made of the ManagedResource. No check of the lease runs at the same
// time.
func (l *lease) announced(mr *resourcesv1alpha1.ManagedResource) { l.mr, l.seen = mr, "" }

// confirmOwner checks with the API server that the ManagedResource still has the task of the run.
func (l *lease) confirmOwner(ctx context.Context) error {
	l.mu.Lock()
	l.asked = l.Clock.Now()
	l.mu.Unlock()
	_, err := l.confirm(ctx, l.mr)
	return err
}

// live asks the API server for the ManagedResource, and at the first time whether it had the Secrets at one moment,
// later for their versions: the watch may have stood still. Each answer counts for liveFor, for all callers.
func (l *lease) live(ctx context.Context) error {
	l.mu.Lock()
	switch now := l.Clock.Now(); {
	case l.first == nil:
		isFresh := now.Sub(l.asked) < liveFor
		if !isFresh {
			l.asked = now
		}
		l.first = once(ctx, func() error {
			if !isFresh {
				if _, err := l.confirm(ctx, l.mr); err != nil {
					return err
				}
			}
			return l.together()
		})
		l.proof = l.first
	case now.Sub(l.asked) >= liveFor:
		l.asked = now
		l.proof = once(ctx, func() error {
			if err := l.first(); err != nil {
				return err
			}
			if _, err := l.confirm(ctx, l.mr); err != nil {
				return err
			}
			return l.inputs.unchanged(ctx)
		})
	}
	proof := l.proof
	l.mu.Unlock()
	return proof()
}

// inputs are the Secrets that a run was planned from. The zero value is none.
type inputs struct {
	reading *source.Reading
	// versions are the versions that were read, by name.
	versions map[string]string
	secrets  *source.Secrets
	states   *states
	// namespace is the namespace of the Secrets.
	namespace string
}

// confirm makes sure that the Secrets were as they were read at one moment.
func (i inputs) confirm(ctx context.Context) error {
	if i.reading == nil {
		return nil
	}
	together, err := i.reading.Confirm(ctx)
	if err != nil {
		return fmt.Errorf("reading the Secrets again: %w", err)
	}
	if !together {
		return errSuperseded
	}
	return nil
}

// newer reports whether a watch has reported newer Secrets since.
func (i inputs) newer(mr *resourcesv1alpha1.ManagedResource) bool {
	return i.reading != nil && i.states.newer(mr, i.versions)
}

// unchanged checks with the API server that the Secrets still have the versions that were read.
func (i inputs) unchanged(ctx context.Context) error {
	for name, read := range i.versions {
		version, err := i.secrets.Version(ctx, types.NamespacedName{Namespace: i.namespace, Name: name})
		if err != nil {
			return fmt.Errorf("reading the Secrets again: %w", err)
		}
		if version != read {
			return errSuperseded
		}
	}
	return nil
}

// waitsForState reports whether the operation annotation forbids every step, even deletion (MRT-7).
func waitsForState(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}
