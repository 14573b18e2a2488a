package source

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
)

// All calls visit with every ManagedResource of the source, of whatever class, in its latest known form. It must not
// be changed.
func (s *Statuses) All(ctx context.Context, visit func(*resourcesv1alpha1.ManagedResource)) error {
	if _, err := s.confirmUnanswered(ctx, types.NamespacedName{}); err != nil {
		return err
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := s.reader.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if w := s.writtenOf(client.ObjectKeyFromObject(mr)); w.counts(mr, s.clock.Now()) {
			mr = w.mr
		}
		visit(mr)
	}
	return nil
}

// ForEachOther calls visit with the ManagedResources of keys, and with those that have a write with an unknown
// outcome, except for one, in their latest known forms. They must not be changed.
func (s *Statuses) ForEachOther(ctx context.Context, except types.NamespacedName, keys []types.NamespacedName,
	visit func(*resourcesv1alpha1.ManagedResource)) error {
	lost, err := s.confirmUnanswered(ctx, except)
	if err != nil {
		return err
	}
	visited := map[types.NamespacedName]struct{}{except: {}}
	for _, key := range slices.Concat(keys, lost) {
		if _, twice := visited[key]; twice {
			continue
		}
		visited[key] = struct{}{}
		mr, err := s.Get(ctx, key)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		visit(mr)
	}
	return nil
}

// confirmUnanswered reads the ManagedResources that have a write with an unknown outcome from the API server, and returns
// them.
func (s *Statuses) confirmUnanswered(ctx context.Context, except types.NamespacedName) ([]types.NamespacedName, error) {
	lost := s.unknown()
	for _, key := range lost {
		if key == except {
			continue
		}
		if _, err := s.GetUncached(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return lost, nil
}

// unknown returns the ManagedResources that have a write with an unknown outcome.
func (s *Statuses) unknown() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []types.NamespacedName
	for key, write := range s.lost {
		if !write.asked {
			keys = append(keys, key)
		}
	}
	return keys
}
