package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// requestTimeout limits one read or list. Most answers take milliseconds, none more than the API server's own limit
	// of a minute, and a run that waits occupies a worker.
	requestTimeout = 10 * time.Second
)

// Secrets reads Secrets and reports their changes. It keeps none, because a source cluster may have any number of
// Secrets that no ManagedResource names.
//
// Reads return the latest state, and every event of the watch is reported: the subscriber decides whether it is newer
// than the data that a run has read.
type Secrets struct {
	client     corev1client.SecretsGetter
	namespaces []string
	log        logr.Logger

	mu sync.Mutex
	// onChange is called for every event of a Secret, onGap for every gap; both outside the lock.
	onChange func(types.NamespacedName, string)
	onGap    func()

	// faults has, for each namespace, the reason why it is not watched; started has the namespaces that have been
	// watched.
	faults  map[string]error
	started map[string]bool
	ready   chan struct{}
}

// NewSecrets returns Secrets for the given namespaces; for all if there are none.
func NewSecrets(client corev1client.SecretsGetter, namespaces []string, log logr.Logger) *Secrets {
	// Without duplicates, one watch reports each Secret, so that its events are in order.
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if len(namespaces) == 0 || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Secrets{
		client: client, namespaces: namespaces, log: log,
		onChange: func(types.NamespacedName, string) {}, onGap: func() {},
		faults: map[string]error{}, started: map[string]bool{}, ready: make(chan struct{}),
	}
}

// Subscribe sets the functions that are called for every change, and when changes may have been missed. onChange gets
// the name of the Secret and its version, which differs whenever the Secret differs, also if it was deleted and
// created again; an empty version means that the Secret was deleted. Earlier changes are not reported; a nil function
// leaves the former one in place.
func (s *Secrets) Subscribe(onChange func(key types.NamespacedName, version string), onGap func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if onChange != nil {
		s.onChange = onChange
	}
	if onGap != nil {
		s.onGap = onGap
	}
}

// Get reads the data of a Secret and its version from the API server. An error is from the API server or the context,
// or reports that the time limit of one request was exceeded.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName) (data map[string][]byte, of string, err error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := s.client.Secrets(key.Namespace).Get(limited, key.Name, metav1.GetOptions{})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, "", fmt.Errorf("reading secret %s: no answer within %s: %w", key, requestTimeout, err)
	case err != nil:
		return nil, "", err
	}
	return secret.Data, version(secret), nil
}

func version(secret *corev1.Secret) string { return string(secret.UID) + "/" + secret.ResourceVersion }

// changed reports the version of a Secret that a watch delivered; empty if it was deleted.
func (s *Secrets) changed(secret *corev1.Secret, version string) {
	s.mu.Lock()
	onChange := s.onChange
	s.mu.Unlock()
	onChange(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, version)
}

// missed reports that events may have been lost.
func (s *Secrets) missed() {
	s.mu.Lock()
	onGap := s.onGap
	s.mu.Unlock()
	onGap()
}
