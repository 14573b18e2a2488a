package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/source"
)

const (
	// startRetry is the pause between two attempts to reach an unavailable source, startLimit the time limit of an
	// attempt.
	startRetry = 2 * time.Second
	startLimit = 10 * time.Second
	// startReport is the interval of log messages about a wait.
	startReport = time.Minute
)

// Ready returns nil if ManagedResources can be applied, or if this instance does not lead. Otherwise it returns the
// obstacle: the source is unavailable, or a permission is missing.
func (e *Engine) Ready() error {
	e.mu.Lock()
	waiting, secrets := e.waiting, e.current.secrets
	e.mu.Unlock()
	if waiting != nil {
		return waiting
	}
	return secrets.Watching()
}

func (e *Engine) waitsFor(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = err
}

// awaitSource returns the identity of the source once the source is usable. It waits as long as the source is
// unavailable or does not serve ManagedResources yet. It returns an error that waiting cannot resolve, such as a
// source without an identity (MRC-7), at once. An error about a missing permission is returned after the time limit
// of the caches.
func (e *Engine) awaitSource(ctx context.Context) (string, error) {
	defer e.waitsFor(nil)
	began, reported := e.Clock.Now(), time.Time{}
	for {
		identity, err := e.trySource(ctx)
		var hopeless *source.IdentityError
		tooLong := apierrors.IsForbidden(err) && e.Clock.Since(began) >= e.Config.Controllers.CacheSyncTimeout.Duration
		if err == nil || ctx.Err() != nil || tooLong || errors.As(err, &hopeless) {
			return identity, err
		}
		e.waitsFor(fmt.Errorf("waiting for the source cluster: %w", err))
		if reported.IsZero() || e.Clock.Since(reported) >= startReport {
			e.Log.Error(err, "Waiting for the source cluster")
			reported = e.Clock.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(startRetry):
		}
	}
}

func (e *Engine) trySource(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	identity, err := source.ClusterID(ctx, e.Source.CoreV1(), *e.Config.Controllers.ClusterID)
	if err != nil {
		return "", err
	}
	return identity, e.findManagedResources(ctx)
}

// findManagedResources lists one ManagedResource of each namespace: this needs discovery and permissions, like the
// caches.
func (e *Engine) findManagedResources(ctx context.Context) error {
	namespaces := e.Config.SourceClientConnection.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := e.Manager.GetAPIReader().List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("listing ManagedResources: %w", err)
		}
	}
	return nil
}
