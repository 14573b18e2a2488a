package controller

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// liveFor is the time for which an answer of the API server counts: the watches may be late, as in a process that stood
// still and does not lead any more.
const liveFor = 2 * time.Second

// freshness is the level of a check whether a run is still current.
type freshness int

const (
	// Cached is for writes, and costs no request once the Secrets are confirmed: it reads the cached ManagedResource. A
	// write from an older Secret does no harm: the next run follows at once, and corrects it.
	Cached freshness = iota
	// Live is for deletions: it sends requests to the API server, unless the last answers still count (liveFor), and
	// also checks whether a watch reported newer Secrets.
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
	// reading has the Secrets, versions their versions by name; a run that deletes everything has none.
	reading  *source.Reading
	versions map[string]string
	// together makes sure, once, that the ManagedResource had all of the Secrets at one moment.
	together func() error

	mu    sync.Mutex
	seen  string
	ended bool
	// asked is the time of the last requests to the API server, proof their result; both are zero without one.
	asked time.Time
	proof func() error
}

// newLease returns a lease of a run for a ManagedResource that was planned from Secrets; nil is none.
func (r *Reconciler) newLease(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reading *source.Reading,
	versions map[string]string) *lease {
	l := &lease{Reconciler: r, mr: mr, reading: reading, versions: versions}
	l.together = once(ctx, func() error { return l.checkSecrets(ctx, (*source.Reading).Together) })
	return l
}

// Check returns errSuperseded if the run is no longer current, and another error if that cannot be checked.
func (l *lease) Check(ctx context.Context, level freshness) error {
	if level == Live {
		if err := l.live(ctx); err != nil {
			return err
		}
		if l.reading != nil && l.states.newer(l.mr, l.versions) {
			return errSuperseded
		}
	} else if err := l.together(); err != nil {
		return err
	}
	return l.checkCache(ctx)
}

// checkCache checks the cached ManagedResource.
func (l *lease) checkCache(ctx context.Context) error {
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

// live reads the ManagedResource and its Secrets from the API server: the watches may have stood still. Each answer
// counts for liveFor, for all callers.
func (l *lease) live(ctx context.Context) error {
	l.mu.Lock()
	if now := l.Clock.Now(); l.proof == nil || now.Sub(l.asked) >= liveFor {
		l.asked = now
		l.proof = once(ctx, func() error {
			if _, err := l.confirm(ctx, l.mr); err != nil {
				return err
			}
			return l.checkSecrets(ctx, (*source.Reading).Unchanged)
		})
	}
	proof := l.proof
	l.mu.Unlock()
	return proof()
}

// checkSecrets returns errSuperseded if a check of the Secrets fails.
func (l *lease) checkSecrets(ctx context.Context, check func(*source.Reading, context.Context) (bool, error)) error {
	if l.reading == nil {
		return nil
	}
	if same, err := check(l.reading, ctx); same || err != nil {
		return err
	}
	return errSuperseded
}

// waitsForState reports whether the operation annotation forbids every step, even deletion (MRT-7).
func waitsForState(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}
