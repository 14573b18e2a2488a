package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/plan"
)

// reasonGivenUp is the reason of the Event about objects that were given up (MRX-25).
const reasonGivenUp = "ObjectsGivenUp"

// requestError is an error of a request to the target.
type requestError struct{ error }

func (e requestError) Unwrap() error { return e.error }

// isUnreachable reports whether an object could not be reached: its API server gave no answer, or none about the
// object.
func isUnreachable(err error) bool {
	var request requestError
	return errors.Is(err, errNotTried) || errors.As(err, &request) && !meta.Refused(err) &&
		!errors.Is(err, context.Canceled)
}

// forceAfter returns the grace period of the objects of a ManagedResource that is being deleted; zero if its deletion
// is not forced (MRX-24).
func forceAfter(mr *resourcesv1alpha1.ManagedResource) (time.Duration, error) {
	value, found := mr.Annotations[resourcesv1alpha1.AnnotationForceDeletionAfter]
	if !found || mr.DeletionTimestamp == nil {
		return 0, nil
	}
	after, err := time.ParseDuration(value)
	if err != nil || after < 0 {
		return 0, fmt.Errorf("annotation %s of the ManagedResource is no duration such as 10m",
			resourcesv1alpha1.AnnotationForceDeletionAfter)
	}
	return max(after, 1), nil
}

// finalizeAfter returns the time from the deletion of an object until its finalizers are removed, by its own
// annotation (MRX-9) or because the deletion of its ManagedResource is forced (MRX-24); zero is never.
func (p *pruner) finalizeAfter(live *unstructured.Unstructured) (time.Duration, error) {
	own, err := finalizeAfter(live)
	if p.force == 0 {
		return own, err
	}
	if err != nil || own == 0 {
		own = p.force // An annotation that cannot be read does not hold a forced deletion up.
	}
	return min(own, p.force), nil
}

// giveUp ends the wait for objects that cannot be reached, once the grace period of a forced deletion is over
// (MRX-25).
func (p *pruner) giveUp(ctx context.Context) {
	if p.force == 0 || p.Clock.Now().Before(p.mr.DeletionTimestamp.Add(p.force)) {
		return
	}
	var names []string
	for entry, err := range p.waiting {
		if !isUnreachable(err) {
			return // The run waits in any case, and names all objects.
		}
		names = append(names, plan.NameOfReference(&entry.Reference.ObjectReference))
	}
	if len(names) == 0 {
		return
	}
	clear(p.waiting)
	slices.Sort(names)
	message := "Gave up objects that could not be reached, and may still exist: " + plan.JoinNames(names, plan.NamedErrors)
	log.FromContext(ctx).Info("Gave up objects that could not be reached", "objects", len(names))
	p.Events.Warn(ctx, p.mr, reasonGivenUp, message)
}
