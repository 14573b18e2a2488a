package controller

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

const (
	// looksPerRun is how many times a run looks, while it writes, whether that is still asked for. One look for each object is not needed: what is
	// written too much the next run puts right.
	looksPerRun = 32
	// looksEvery is after what time it looks in any case.
	looksEvery = time.Second
)

// asking tells during a run whether what it does is still asked for, as far as the cache knows: the ManagedResource was not changed so that another
// task follows (MRT-7, MRA-4), and of what the run was planned from nothing newer was told. It costs no request.
//
// Invariant: known is the resource version of a form that asks for the task of mr, and nothing follows from it about any other form. Once something else
// was asked for, that is so until the run has ended.
type asking struct {
	*Reconciler
	mr   *resourcesv1alpha1.ManagedResource
	from basis

	mu     sync.Mutex
	known  string
	ended  bool
	writes int
	looked time.Time
}

// now says so before what can't be undone: what is deleted is lost. It returns errMoved if it is not asked for any more.
func (q *asking) now(ctx context.Context) error {
	if q.from.overtaken() {
		return errMoved
	}
	return q.look(ctx)
}

// still says so before a write, now and then. What an older Secret says is written nevertheless: the next run follows at once, and writes what
// differs.
func (q *asking) still(ctx context.Context) error {
	q.mu.Lock()
	q.writes++
	now := q.Clock.Now()
	due := q.ended || q.writes > len(q.mr.Status.Resources)/looksPerRun || now.Sub(q.looked) >= looksEvery
	if due {
		q.writes, q.looked = 0, now
	}
	q.mu.Unlock()
	if !due {
		return nil
	}
	return q.look(ctx)
}

func (q *asking) look(ctx context.Context) error {
	latest, err := q.Statuses.Get(ctx, ownerOf(q.mr))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.ended:
	case err != nil:
		q.ended = true
	case q.known == latest.ResourceVersion:
	case q.Class.SameTask(q.mr, latest) && !waitsForState(latest):
		q.known = latest.ResourceVersion
	default:
		q.ended = true
	}
	if q.ended {
		return errMoved
	}
	return nil
}

// waitsForState says whether nothing is to be done for a ManagedResource, not even deletion (MRT-7).
func waitsForState(mr *resourcesv1alpha1.ManagedResource) bool {
	return mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState
}
