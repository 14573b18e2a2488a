package source

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// requestTimeout limits one read or list: an API server that answers at all does so within its own minute, mostly
	// within milliseconds, and the run that waits for the answer holds a worker.
	requestTimeout = 10 * time.Second
)

// Secrets reads Secrets and reports their changes. It keeps none: a source cluster may hold any number of Secrets that
// no ManagedResource names.
//
// Reads ask for the latest state, and every event of the watch is passed on: the subscriber decides whether it is news
// about the data that a run has read.
type Secrets struct {
	client     corev1client.SecretsGetter
	namespaces []string
	log        logr.Logger

	mu sync.Mutex
	// onChange is called with every event of a Secret, onGap with every gap; outside the lock.
	onChange func(types.NamespacedName, string)
	onGap    func()

	// positions are the resource versions that the watches have reached, by namespace: every event up to them has been
	// reported.
	positions map[string]string
	// faults has, for each namespace, the reason why it is not watched; started has the namespaces that have been
	// watched.
	faults  map[string]error
	started map[string]bool
	ready   chan struct{}
}

// NewSecrets returns Secrets of the given namespaces, all if there are none.
func NewSecrets(client corev1client.SecretsGetter, namespaces []string, log logr.Logger) *Secrets {
	// Each Secret has one watch, which keeps the words on it in order.
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if len(namespaces) == 0 || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Secrets{
		client: client, namespaces: namespaces, log: log,
		onChange: func(types.NamespacedName, string) {}, onGap: func() {},
		positions: map[string]string{},
		faults:    map[string]error{}, started: map[string]bool{}, ready: make(chan struct{}),
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

// Get returns the data of a Secret, which must not be changed, and its version. An error is from the API server or the
// context, or reports that the time limit of one request was exceeded.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName) (data map[string][]byte, of string, err error) {
	got, err := s.read(ctx, key, "")
	return got.data, got.version, err
}

// latestSecret is a Secret as it was at asOf, the highest resource version for which that is certain: every write to
// the Secret until asOf has at most the Secret's own resource version.
type latestSecret struct {
	data                           map[string][]byte
	version, resourceVersion, asOf string
}

// reach records the position of a watch.
func (s *Secrets) reach(namespace, position string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions[namespace] = position
}

// read is Get for a caller that knows a resource version of the source. The answer is of a moment after the request was
// sent, so that all resource versions that were known before are older.
func (s *Secrets) read(ctx context.Context, key types.NamespacedName, known string) (latestSecret, error) {
	known = latest(known, s.position(key.Namespace))
	secret, err := s.ask(ctx, key)
	if err != nil {
		return latestSecret{}, err
	}
	return latestSecret{secret.Data, version(secret), secret.ResourceVersion, latest(secret.ResourceVersion, known)}, nil
}

// Version returns the version of a Secret as the API server has it now, regardless of the watch; empty if there is no
// Secret.
func (s *Secrets) Version(ctx context.Context, key types.NamespacedName) (string, error) {
	secret, err := s.ask(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return version(secret), nil
}

func (s *Secrets) ask(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	secret, err := s.client.Secrets(key.Namespace).Get(limited, key.Name, metav1.GetOptions{})
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("reading secret %s: no answer within %s: %w", key, requestTimeout, err)
	}
	return secret, err
}

// position returns the resource version up to which all changes in a namespace were reported.
func (s *Secrets) position(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.namespaces[0] == metav1.NamespaceAll {
		namespace = metav1.NamespaceAll
	}
	return s.positions[namespace]
}

func version(secret *corev1.Secret) string { return string(secret.UID) + "/" + secret.ResourceVersion }

// changed reports the version of a Secret that a watch delivered; empty if it was deleted.
func (s *Secrets) changed(secret *corev1.Secret, version string) {
	s.mu.Lock()
	onChange := s.onChange
	s.mu.Unlock()
	onChange(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}, version)
}

// missed records that events may have been lost. Resource versions may have turned back meanwhile, with a restored
// etcd.
func (s *Secrets) missed() {
	s.mu.Lock()
	s.positions = map[string]string{}
	onGap := s.onGap
	s.mu.Unlock()
	onGap()
}

// notOlder reports whether a version is known to be at least as new as another one.
func notOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}

// latest returns the highest of some resource versions; those that cannot be compared do not count.
func latest(versions ...string) string {
	highest := ""
	for _, v := range versions {
		if notOlder(v, cmp.Or(highest, v)) {
			highest = v
		}
	}
	return highest
}
