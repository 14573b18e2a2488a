package source

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/clock"
)

const (
	// freshFor is how long the data of a Secret that a watch delivered is held: its ManagedResource mostly follows at once.
	freshFor = 20 * time.Second
	// freshBytes limits what is held: eight of the largest Secrets.
	freshBytes = 8 << 20
	// watchTimeout is how long a watch lasts; an idle process then sends one request in that time.
	watchTimeout = 90 * time.Minute
	// restartDelay is the pause before a watch that failed is started again.
	restartDelay = 2 * time.Second
)

// Secrets reads Secrets and tells of their changes. It keeps none but, for moments, those that have just changed: a source
// cluster may hold any number of Secrets that no ManagedResource names.
type Secrets struct {
	client     corev1client.SecretsGetter
	namespaces []string
	clock      clock.PassiveClock
	log        logr.Logger

	// onChange is called with every change; onGap when changes may have been missed.
	onChange func(types.NamespacedName, string)
	onGap    func()

	ready sync.WaitGroup
	mu    sync.Mutex
	fresh map[types.NamespacedName]freshSecret
	bytes int
}

type freshSecret struct {
	data    map[string][]byte
	version string
	size    int
	expires time.Time
}

// NewSecrets returns Secrets of the given namespaces, all if there are none.
func NewSecrets(client corev1client.SecretsGetter, namespaces []string, clock clock.PassiveClock, log logr.Logger) *Secrets {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	s := &Secrets{client: client, namespaces: namespaces, clock: clock, log: log, fresh: map[types.NamespacedName]freshSecret{}}
	s.ready.Add(len(namespaces))
	return s
}

// Subscribe sets what is called with the name and the version of each changed Secret, and when changes may have been
// missed. It must be called before Start.
func (s *Secrets) Subscribe(onChange func(types.NamespacedName, string), onGap func()) {
	s.onChange, s.onGap = onChange, onGap
}

// Start watches until the context ends.
func (s *Secrets) Start(ctx context.Context) error {
	var running sync.WaitGroup
	for _, namespace := range s.namespaces {
		running.Go(func() { s.watch(ctx, namespace) })
	}
	running.Wait()
	return nil
}

// WaitUntilWatching waits until no change can be missed any more.
func (s *Secrets) WaitUntilWatching(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.ready.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("watching Secrets of the source cluster: %w", ctx.Err())
	}
}

// Get returns the data of a Secret and its version. Whoever gets the data must not change it.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName) (map[string][]byte, string, error) {
	s.mu.Lock()
	fresh, found := s.fresh[key]
	s.mu.Unlock()
	if found && s.clock.Now().Before(fresh.expires) {
		return fresh.data, fresh.version, nil
	}
	secret, err := s.client.Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil, "", err
	}
	return secret.Data, version(secret), nil
}

func version(secret *corev1.Secret) string { return string(secret.UID) + "/" + secret.ResourceVersion }

// watch follows one namespace. It does not list: only what changes from now on matters, since everybody who needs a Secret
// reads it.
func (s *Secrets) watch(ctx context.Context, namespace string) {
	first := true
	for ctx.Err() == nil {
		err := s.watchOnce(ctx, namespace, func() {
			if first {
				first = false
				s.ready.Done()
				return
			}
			s.forgetAll()
			s.onGap()
		})
		if err != nil && ctx.Err() == nil {
			s.log.Info("Watch of Secrets ended, starting it again", "namespace", namespace, "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
}

func (s *Secrets) watchOnce(ctx context.Context, namespace string, watching func()) error {
	list, err := s.client.Secrets(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("where to start: %w", err)
	}
	timeout := int64(watchTimeout / time.Second)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = &timeout
			options.AllowWatchBookmarks = true
			return s.client.Secrets(namespace).Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	watching()
	tidy := time.NewTicker(freshFor)
	defer tidy.Stop()
	for {
		select {
		case <-tidy.C:
			s.forgetExpired()
		case event, open := <-watcher.ResultChan():
			if !open {
				return fmt.Errorf("no more events")
			}
			switch object := event.Object.(type) {
			case *corev1.Secret:
				s.changed(event.Type, object)
			default:
				if event.Type == watch.Error {
					return apierrors.FromObject(event.Object)
				}
			}
		}
	}
}

func (s *Secrets) changed(event watch.EventType, secret *corev1.Secret) {
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	switch event {
	case watch.Added, watch.Modified:
		s.hold(key, secret)
		s.onChange(key, version(secret))
	case watch.Deleted:
		s.forget(key)
	}
}

func (s *Secrets) hold(key types.NamespacedName, secret *corev1.Secret) {
	size := 0
	for _, value := range secret.Data {
		size += len(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(key)
	if s.bytes+size > freshBytes {
		return
	}
	s.fresh[key] = freshSecret{maps.Clone(secret.Data), version(secret), size, s.clock.Now().Add(freshFor)}
	s.bytes += size
}

func (s *Secrets) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(key)
}

func (s *Secrets) forgetLocked(key types.NamespacedName) {
	if fresh, found := s.fresh[key]; found {
		s.bytes -= fresh.size
		delete(s.fresh, key)
	}
}

func (s *Secrets) forgetExpired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for key, fresh := range s.fresh {
		if now.After(fresh.expires) {
			s.forgetLocked(key)
		}
	}
}

func (s *Secrets) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh, s.bytes = map[types.NamespacedName]freshSecret{}, 0
}
