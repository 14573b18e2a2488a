package steps

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// LiveFor is the time for which an answer of the API server counts. Watches are no substitute: they may be late, as
// in a process that stood still and no longer leads.
const LiveFor = 2 * time.Second

// Level is the level of a check whether a run is still current.
type Level int

const (
	// Cached is for writes, and costs no request once the Secrets are confirmed: it reads the cached ManagedResource. A
	// write from an older Secret does no harm: the next run follows at once, and corrects it.
	Cached Level = iota
	// Live is for deletions: it sends requests to the API server, unless the last answers still count (LiveFor), and
	// also checks whether a watch reported newer Secrets.
	Live
)

// Freshness checks that a run is still current: its ManagedResource has the same task (MRT-7, MRA-4), and no newer
// version is known of the Secrets that the run was planned from. It is safe for concurrent use.
//
// Invariant: seen is a resource version with the task of mr, and proves nothing about any other version. A run that is
// not current any more stays so.
type Freshness struct {
	source Source
	clock  clock.PassiveClock
	mr     *resourcesv1alpha1.ManagedResource
	// secrets has no Reading in a run that deletes everything.
	secrets Secrets
	// together checks, once, that all Secrets existed at one moment as they were read.
	together func() error

	mu    sync.Mutex
	seen  string
	ended bool
	// requested is the time of the last requests to the API server, and proof returns their result; both are zero
	// before the first.
	requested time.Time
	proof     func() error
}

// Secrets are the Secrets that a run was planned from.
type Secrets struct {
	Reading *source.Reading
	// Newer reports whether a watch has reported other versions since.
	Newer func() bool
}

// NewFreshness returns the check of a run for a ManagedResource that was planned from Secrets.
func NewFreshness(ctx context.Context, s Source, now clock.PassiveClock, mr *resourcesv1alpha1.ManagedResource,
	secrets Secrets) *Freshness {
	f := &Freshness{source: s, clock: now, mr: mr, secrets: secrets}
	f.together = Once(ctx, func() error { return f.checkSecrets(ctx, (*source.Reading).Together) })
	return f
}

// Check returns ErrSuperseded if the run is no longer current, and another error if that cannot be checked.
func (f *Freshness) Check(ctx context.Context, level Level) error {
	if level == Live {
		if err := f.live(ctx); err != nil {
			return err
		}
		if f.secrets.Reading != nil && f.secrets.Newer() {
			return ErrSuperseded
		}
	} else if err := f.together(); err != nil {
		return err
	}
	return f.checkCache(ctx)
}

// checkCache checks the cached ManagedResource.
func (f *Freshness) checkCache(ctx context.Context) error {
	latest, err := f.source.Statuses.Get(ctx, OwnerOf(f.mr))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.ended:
	case err != nil:
		f.ended = true
	case f.seen == latest.ResourceVersion:
	case f.source.Class.SameDesiredState(f.mr, latest) && !meta.WaitsForState(latest):
		f.seen = latest.ResourceVersion
	default:
		f.ended = true
	}
	if f.ended {
		return ErrSuperseded
	}
	return nil
}

// Announced records the version that the run itself wrote of the ManagedResource. No check runs at the same time.
func (f *Freshness) Announced(mr *resourcesv1alpha1.ManagedResource) { f.mr, f.seen = mr, "" }

// live reads the ManagedResource and its Secrets from the API server: the watches may be late. Each answer counts for
// LiveFor, for all callers.
func (f *Freshness) live(ctx context.Context) error {
	f.mu.Lock()
	if now := f.clock.Now(); f.proof == nil || now.Sub(f.requested) >= LiveFor {
		f.requested = now
		f.proof = Once(ctx, func() error {
			if _, err := f.source.Confirm(ctx, f.mr); err != nil {
				return err
			}
			return f.checkSecrets(ctx, (*source.Reading).Unchanged)
		})
	}
	proof := f.proof
	f.mu.Unlock()
	return proof()
}

// checkSecrets returns ErrSuperseded if a check of the Secrets fails.
func (f *Freshness) checkSecrets(ctx context.Context, check func(*source.Reading, context.Context) (bool, error)) error {
	if f.secrets.Reading == nil {
		return nil
	}
	if same, err := check(f.secrets.Reading, ctx); same || err != nil {
		return err
	}
	return ErrSuperseded
}
