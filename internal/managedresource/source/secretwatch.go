package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// watchTimeout is the duration of a watch; an idle process then sends one request in that time.
	watchTimeout = 90 * time.Minute
	// restartDelay is the pause before a watch that failed, or ended within that time, is started again.
	restartDelay = 2 * time.Second
	// repeatFault is the interval at which a fault that stays is logged.
	repeatFault = time.Minute
)

// errStarting is the fault of a watch that has neither begun nor failed.
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

// WaitUntilWatching waits until no change can be missed any more, however long the API server is away. A missing right
// ends it after the time limit, with an error that names the right; so does the context.
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
// obstacle: the missing right with verb, resource and namespace, or the API server's answer.
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
	position := ""
	var logged string
	var loggedAt time.Time
	for ctx.Err() == nil {
		began := s.clock.Now()
		next, err := s.follow(ctx, namespace, position)
		position = next
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fault(namespace, err)
			if text := err.Error(); text != logged || s.clock.Since(loggedAt) >= repeatFault {
				s.log.Error(err, "Cannot watch Secrets of the source cluster, trying again", "namespace", namespace)
				logged, loggedAt = text, s.clock.Now()
			}
		} else {
			logged = ""
		}
		if err == nil && s.clock.Since(began) >= restartDelay {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

// follow watches a namespace from a position on, from now on if there is none, and returns the position that it
// reached; none if the next watch cannot go on from there.
//
// It is one watch from its beginning to its end; each branch is a way for it to end. Only a watch that lasts until its
// timeout is resumed (MRB-47): an API server whose etcd was restored accepts a watch from a revision that is still to
// come, and reports nothing until then.
func (s *Secrets) follow(ctx context.Context, namespace, position string) (string, error) {
	resumed := position != ""
	if !resumed {
		now, err := s.now(ctx, namespace)
		if err != nil {
			return "", explain("list", namespace, err)
		}
		position = now
	}
	timeout := s.clock.Now().Add(watchTimeout)
	watcher, err := s.open(ctx, namespace, position)
	if err != nil {
		return "", explain("watch", namespace, err)
	}
	defer watcher.Stop()
	s.watching(namespace, resumed)

	tidy := time.NewTicker(freshFor)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return position, nil
		case <-tidy.C:
			s.forgetExpired()
		case event, open := <-watcher.ResultChan():
			if !open && s.clock.Now().Before(timeout) {
				return "", nil
			}
			if !open {
				return position, nil
			}
			if event.Type == watch.Error {
				return "", explain("watch", namespace, apierrors.FromObject(event.Object))
			}
			secret, isSecret := event.Object.(*corev1.Secret)
			if !isSecret {
				return "", fmt.Errorf("an event of type %s has no Secret", event.Type)
			}
			s.take(event.Type, secret)
			position = secret.ResourceVersion
			s.reach(namespace, position)
		}
	}
}

// take takes an event of a watch.
func (s *Secrets) take(event watch.EventType, secret *corev1.Secret) {
	switch event {
	case watch.Added, watch.Modified:
		s.written(secret)
	case watch.Deleted:
		s.deleted(secret)
	}
}

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

// open begins a watch; the time limit is for its beginning only.
func (s *Secrets) open(ctx context.Context, namespace, position string) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	limit := time.AfterFunc(requestTimeout, cancel)
	seconds := int64(watchTimeout / time.Second)
	watcher, err := s.client.Secrets(namespace).Watch(ctx, metav1.ListOptions{
		ResourceVersion: position, TimeoutSeconds: &seconds, AllowWatchBookmarks: true,
	})
	if !limit.Stop() && err == nil {
		watcher.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &cancelling{watcher, cancel}, nil
}

// cancelling is a watch that ends its request, too.
type cancelling struct {
	watch.Interface
	cancel context.CancelFunc
}

func (c *cancelling) Stop() { c.Interface.Stop(); c.cancel() }

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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[namespace] = err
}

// explain names the right that is missing, if one is.
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
