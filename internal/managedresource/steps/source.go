package steps

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

// ErrSuperseded ends a run whose ManagedResource has another task now; the next run begins at once.
var ErrSuperseded = errors.New("the ManagedResource was changed meanwhile")

// Source reads and writes the ManagedResource of a run, unless it has another task now.
type Source struct {
	Statuses *source.Statuses
	Class    meta.Class
}

// Update writes the status of the ManagedResource that a run is about, and returns the new version; nil if the
// ManagedResource is gone. If it has another task now, Update writes nothing and returns ErrSuperseded.
func (s Source) Update(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	change func(*resourcesv1alpha1.ManagedResource) *source.Change) (*resourcesv1alpha1.ManagedResource, error) {
	superseded := false
	next, err := s.Statuses.Update(ctx, OwnerOf(mr), mr.UID,
		func(current *resourcesv1alpha1.ManagedResource) *source.Change {
			if superseded = !s.Class.SameDesiredState(mr, current); superseded {
				return nil
			}
			return change(current)
		})
	switch {
	case errors.Is(err, source.ErrGone):
		return nil, nil
	case err != nil:
		return nil, err
	case superseded:
		return nil, ErrSuperseded
	}
	return next, nil
}

// Report writes conditions to the status, as Update does.
func (s Source) Report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	conditions ...meta.ConditionChange) error {
	_, err := s.Update(ctx, mr, func(*resourcesv1alpha1.ManagedResource) *source.Change {
		return &source.Change{Conditions: conditions}
	})
	return err
}

// Confirm reads the ManagedResource from the API server, and returns ErrSuperseded if it has another task.
func (s Source) Confirm(ctx context.Context,
	mr *resourcesv1alpha1.ManagedResource) (*resourcesv1alpha1.ManagedResource, error) {
	live, err := s.Statuses.GetUncached(ctx, OwnerOf(mr))
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrSuperseded
	case err != nil:
		return nil, fmt.Errorf("reading the ManagedResource: %w", err)
	case !s.Class.SameDesiredState(mr, live):
		return nil, ErrSuperseded
	}
	return live, nil
}

// OwnerOf returns the key under which a ManagedResource owns objects.
func OwnerOf(mr *resourcesv1alpha1.ManagedResource) objects.Owner {
	return objects.Owner{Namespace: mr.Namespace, Name: mr.Name}
}
