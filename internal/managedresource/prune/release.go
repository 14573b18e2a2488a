package prune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
	"github.com/espalier-project/espalier/internal/managedresource/steps"
	"github.com/espalier-project/espalier/internal/managedresource/target"
)

// Release releases the objects that are ignored from now on: they stay, without origin and description (MRO-2,
// MRO-3).
func (p *Pruner) Release(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	refs []resourcesv1alpha1.ObjectReference, freshness *steps.Freshness) error {
	var mu sync.Mutex
	var errs []error
	failed := func(_ int, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	var breaker steps.Breaker
	begun := p.Limits.Parallel(ctx, len(refs), func(i int) {
		kind := refs[i].GroupVersionKind().GroupKind()
		err := freshness.Check(ctx, steps.Cached)
		switch {
		case err != nil:
		case breaker.IsOpen(kind):
			err = fmt.Errorf("releasing object %q: %w", plan.NameOfReference(&refs[i].ObjectReference), steps.ErrNotTried)
		default:
			err = p.releaseOne(ctx, mr, &refs[i])
			breaker.Record(kind, err)
		}
		if err != nil {
			failed(i, err)
		}
	}, func(i int, err error) {
		failed(i, fmt.Errorf("releasing object %q: %w", plan.NameOfReference(&refs[i].ObjectReference), err))
	})
	if begun < len(refs) {
		errs = append(errs, fmt.Errorf("%d objects were not reached: %w", len(refs)-begun, ctx.Err()))
	}
	switch {
	case len(errs) == 0:
		return nil
	case slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, steps.ErrSuperseded) }):
		return steps.ErrSuperseded
	}
	return errors.New(plan.Combine("Could not release all orphaned resources", errs))
}

func (p *Pruner) releaseOne(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	ref *resourcesv1alpha1.ObjectReference) error {
	err := p.tryRelease(ctx, mr, ref)
	for attempt := 1; apierrors.IsConflict(err) && attempt < deleteAttempts; attempt++ {
		err = p.tryRelease(ctx, mr, ref)
	}
	return err
}

// tryRelease reads an object, and removes its origin and description if the origin names the ManagedResource.
func (p *Pruner) tryRelease(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	ref *resourcesv1alpha1.ObjectReference) error {
	name := plan.NameOfReference(&ref.ObjectReference)
	live, _, err := p.Owners.Locations.Find(ctx, ref)
	if target.Gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("error getting object %q: %w", name, err)
	}
	value, found := live.GetAnnotations()[resourcesv1alpha1.AnnotationOrigin]
	if found && !p.Owners.IsOrigin(steps.OwnerOf(mr), value) {
		return nil
	}
	// From now on, its creation by this process proves nothing, even if the answer to the patch is lost.
	key := objects.IDOfEntry(ref)
	if found || steps.CreatedOnce(ref) && ref.UID == live.GetUID() || p.Owners.CreatedFor(steps.OwnerOf(mr), key) == live.GetUID() {
		p.Tracker.TakenOver(objects.Owner{}, key, live.GetUID())
	}
	if !found {
		return nil
	}
	// The patch applies only to the version that was read: another ManagedResource may own the object by now.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
		"annotations": map[string]any{resourcesv1alpha1.AnnotationOrigin: nil, resourcesv1alpha1.AnnotationDescription: nil},
	}})
	if err != nil {
		return err
	}
	if err := p.Target.Patch(ctx, live, patch); err != nil && !target.Gone(err) {
		return fmt.Errorf("error patching object %q: %w", name, err)
	}
	steps.Wrote(ctx, plan.Released, name)
	return nil
}
