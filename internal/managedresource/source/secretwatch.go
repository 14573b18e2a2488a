package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-project/espalier/internal/reflector"
)

const (
	// watchTimeout makes a watch last up to twice that time, for which an idle process sends one request.
	watchTimeout = 90 * time.Minute
	// restartDelay is the pause before a list after a failure, or after a watch that ended early.
	restartDelay = 2 * time.Second
)

// errStarting is the error of a watch that has neither begun nor failed.
var errStarting = errors.New("the watch has not begun yet")

// Start watches until the context ends.
func (s *Secrets) Start(ctx context.Context) error {
	s.mu.Lock()
	for _, namespace := range s.namespaces {
		s.faults[namespace] = errStarting
	}
	s.mu.Unlock()
	var running sync.WaitGroup
	for _, namespace := range s.namespaces {
		running.Go(func() { s.watch(ctx, namespace) })
	}
	running.Wait()
	return nil
}

// WaitUntilWatching waits until no change can be missed any more, however long the API server is unavailable. If a
// right is missing, it returns an error that names the right after the time limit; it also ends with the context.
func (s *Secrets) WaitUntilWatching(ctx context.Context, limit time.Duration) error {
	for {
		select {
		case <-s.ready:
			return nil
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Watching())
		case <-time.After(limit):
			if fault := s.Watching(); apierrors.IsForbidden(fault) {
				return fault
			}
		}
	}
}

// Watching returns nil as long as changes are reported within moments, and before Start. Otherwise it returns the
// cause: the missing right with verb, resource and namespace, or the API server's answer.
func (s *Secrets) Watching() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, namespace := range s.namespaces {
		if fault := s.faults[namespace]; fault != nil {
			return fmt.Errorf("watching Secrets of the source cluster in %s: %w", area(namespace), fault)
		}
	}
	return nil
}

// watch follows one namespace. It reads no Secrets at the start: only changes from now on matter, because every run
// that needs a Secret reads it.
func (s *Secrets) watch(ctx context.Context, namespace string) {
	var listed atomic.Bool
	requests := reflector.Requests{
		List: func(ctx context.Context) (string, error) {
			listed.Store(true)
			return s.now(ctx, namespace)
		},
		Watch: func(ctx context.Context, options *metav1.ListOptions) (watch.Interface, error) {
			return s.client.Secrets(namespace).Watch(ctx, *options)
		},
		Limit: requestTimeout,
		Failed: func(verb string, err error) {
			if ctx.Err() == nil {
				s.fault(namespace, explain(verb, namespace, err))
			}
		},
		Resumed: func() (ended func()) {
			s.watching(namespace, !listed.Swap(false))
			return func() {}
		},
	}
	cache.NewReflectorWithOptions(requests.ListWatch(), &corev1.Secret{}, eventsOf{s}, cache.ReflectorOptions{
		Name: "secrets", MinWatchTimeout: watchTimeout, Backoff: &wait.Backoff{Duration: restartDelay},
	}).RunWithContext(klog.NewContext(ctx, logr.Discard())) // Failed logs.
}

// eventsOf is the store of a reflector. It keeps nothing, and reports events.
type eventsOf struct{ *Secrets }

// Add implements cache.ReflectorStore.
func (w eventsOf) Add(object any) error { return w.Update(object) }

// Update implements cache.ReflectorStore.
func (w eventsOf) Update(object any) error {
	secret := object.(*corev1.Secret)
	w.changed(secret, version(secret))
	return nil
}

// Delete implements cache.ReflectorStore.
func (w eventsOf) Delete(object any) error { w.changed(object.(*corev1.Secret), ""); return nil }

// Replace implements cache.ReflectorStore: lists are empty.
func (w eventsOf) Replace([]any, string) error { return nil }

// Resync implements cache.ReflectorStore.
func (w eventsOf) Resync() error { return nil }

// now returns the present resource version of a namespace.
func (s *Secrets) now(ctx context.Context, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := s.client.Secrets(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// watching records that a namespace is watched, and reports a gap unless nothing was missed.
func (s *Secrets) watching(namespace string, resumed bool) {
	s.mu.Lock()
	first := !s.started[namespace]
	s.started[namespace] = true
	all := len(s.started) == len(s.namespaces)
	delete(s.faults, namespace)
	s.mu.Unlock()
	if first && all {
		close(s.ready)
	}
	if !first && !resumed {
		s.missed()
	}
}

func (s *Secrets) fault(namespace string, err error) {
	s.log.Error(err, "Cannot watch Secrets of the source cluster, trying again", "namespace", namespace)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[namespace] = err
}

// explain adds the missing right to an error of the API server, if that is the cause.
func explain(verb, namespace string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the right to %s secrets in %s is missing: %w", verb, area(namespace), err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the credentials are not accepted: %w", err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}

func area(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return "all namespaces"
	}
	return fmt.Sprintf("namespace %q", namespace)
}
