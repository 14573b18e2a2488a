package source

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// All calls visit with the latest known version of every ManagedResource of the source, of any class, other than
// except. visit must not change it.
func (s *Statuses) All(ctx context.Context, except types.NamespacedName,
	visit func(*resourcesv1alpha1.ManagedResource)) error {
	if err := s.confirmUnanswered(ctx, except); err != nil {
		return err
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := s.reader.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if client.ObjectKeyFromObject(mr) == except {
			continue
		}
		if w := s.writtenOf(client.ObjectKeyFromObject(mr)); w.counts(mr, s.clock.Now()) {
			mr = w.mr
		}
		visit(mr)
	}
	return nil
}

// confirmUnanswered reads the ManagedResources that have a write with an unknown outcome from the API server.
func (s *Statuses) confirmUnanswered(ctx context.Context, except types.NamespacedName) error {
	for _, key := range s.unknown() {
		if key == except {
			continue
		}
		if _, err := s.GetUncached(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// unknown returns the ManagedResources that have a write with an unknown outcome.
func (s *Statuses) unknown() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []types.NamespacedName
	for key, k := range s.known {
		if k.lost != nil && !k.lost.asked {
			keys = append(keys, key)
		}
	}
	return keys
}
