package marked

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
)

// refresh lists the marked objects, unless the list is recent enough. Concurrent callers wait for the same list.
func (s *Set) refresh(ctx context.Context) {
	if !s.isOutdated() {
		return
	}
	select {
	case s.looking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.looking }()
	if !s.isOutdated() {
		return
	}
	began := s.Clock.Now()
	all, err := s.list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kept: // The collector reports the marked objects itself.
	case err != nil:
		s.failed = began
		s.Log.Info("Could not list objects that are marked for deletion; references to them are not noticed", "reason", err.Error())
	default:
		s.readAt = began
		s.setLocked(all)
	}
}

// isOutdated reports whether the list may lack objects that the collector deletes soon.
func (s *Set) isOutdated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock.Now()
	recent := func(at time.Time, within time.Duration) bool { return !at.IsZero() && now.Sub(at) < within }
	return !s.kept && !recent(s.readAt, internalreferences.Fresh(s.Period)) && !recent(s.failed, retryReads)
}

// list lists the metadata of marked objects.
func (s *Set) list(ctx context.Context) ([]Key, error) {
	var all []Key
	for _, kind := range []references.Kind{references.ConfigMap, references.Secret} {
		for _, namespace := range s.Namespaces {
			for token := ""; ; {
				found := &metav1.PartialObjectMetadataList{}
				found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(KindNames[kind] + "List"))
				err := s.Target.List(ctx, found, client.InNamespace(namespace), client.Limit(page), client.Continue(token),
					client.MatchingLabels{resourcesv1alpha1.LabelCondemned: "true"})
				if err != nil {
					return nil, err
				}
				for i := range found.Items {
					all = append(all, Key{kind, found.Items[i].Namespace, found.Items[i].Name})
				}
				if token = found.Continue; token == "" {
					break
				}
			}
		}
	}
	return all, nil
}
