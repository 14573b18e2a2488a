package source

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	"k8s.io/utils/clock"
)

const (
	// freshFor is the time for which the data of a Secret that a watch delivered is held: its ManagedResource mostly
	// follows at once.
	freshFor = 20 * time.Second
	// freshBytes limits the held data: eight of the largest Secrets.
	freshBytes = 8 << 20
	// freshOverhead is the cost of a held Secret in addition to its values (key, version, map), so that freshBytes
	// limits empty Secrets, too.
	freshOverhead = 512
	// requestTimeout limits one read or list: an API server that answers at all does so within its own minute, mostly
	// within milliseconds, and the run that waits for the answer holds a worker.
	requestTimeout = 10 * time.Second
	// readAttempts limits how often a read is repeated that a newer event made stale. The second read finds the newer
	// Secret held, unless the Secret is too large to hold and changes again and again.
	readAttempts = 4
)

// Secrets reads Secrets and reports their changes. It keeps only Secrets that have just changed, and those for
// moments: a source cluster may hold any number of Secrets that no ManagedResource names.
//
// The watch's word on a Secret is the latest event about it; a gap in the watch is a word about all of them.
// Invariant: the data that Get returns is never older than any word that counted when it returned, nor than the data
// that a Get had returned when it began, as long as resource versions go forward. It holds because
//   - reads ask for the latest state, so that only what comes while one is under way can be newer than its answer;
//   - an answer that is older than such a word is thrown away, and asked for again;
//   - a word that is older than any answer so far is reported, but not held, and an answer that is newer than the held
//     Secret ends the holding;
//   - the subscriber is notified after a word counts, and of every word: it decides whether it is news to it.
type Secrets struct {
	client     corev1client.SecretsGetter
	namespaces []string
	clock      clock.PassiveClock
	log        logr.Logger

	mu sync.Mutex
	// onChange is called with every word on one Secret, onGap with every gap; outside the lock.
	onChange func(types.NamespacedName, string)
	onGap    func()

	fresh map[types.NamespacedName]freshSecret
	bytes int
	// answered is the highest resource version that Get returned since the last gap. One number does for all Secrets:
	// versions count writes to all of them, and a word below it is late, which costs one read.
	answered string
	// positions are the resource versions that the watches have reached, by namespace: every word up to them has been
	// reported.
	positions map[string]string
	// reads are the requests that are under way.
	reads map[*read]struct{}
	// faults has, for each namespace, the reason why it is not watched; started has the namespaces that have been
	// watched.
	faults  map[string]error
	started map[string]bool
	ready   chan struct{}
}

type freshSecret struct {
	data                     map[string][]byte
	version, resourceVersion string
	size                     int
	expires                  time.Time
}

// read is a request under way, a resource version that there was before it, and the last word that came meanwhile;
// overtaken without a version is a deletion or a gap.
type read struct {
	key       types.NamespacedName
	known     string
	overtaken bool
	version   string
}

// NewSecrets returns Secrets of the given namespaces, all if there are none.
func NewSecrets(client corev1client.SecretsGetter, namespaces []string, clock clock.PassiveClock,
	log logr.Logger) *Secrets {
	// Each Secret has one watch, which keeps the words on it in order.
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	if len(namespaces) == 0 || slices.Contains(namespaces, metav1.NamespaceAll) {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &Secrets{
		client: client, namespaces: namespaces, clock: clock, log: log,
		onChange: func(types.NamespacedName, string) {}, onGap: func() {},
		fresh: map[types.NamespacedName]freshSecret{}, positions: map[string]string{}, reads: map[*read]struct{}{},
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

// Get returns the data of a Secret, which must not be changed, and its version. An error is from the API server or the
// context, or reports that the time limit of one request was exceeded.
func (s *Secrets) Get(ctx context.Context, key types.NamespacedName) (data map[string][]byte, of string, err error) {
	got, err := s.get(ctx, key, "")
	return got.data, got.version, err
}

// get is Get for a caller that knows a resource version of the source.
func (s *Secrets) get(ctx context.Context, key types.NamespacedName, known string) (latestSecret, error) {
	if held := s.held(key); held != nil {
		return *held, nil
	}
	return s.read(ctx, key, known)
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

// read asks the API server until the answer is not older than the last word. An answer is of a moment after the
// request was sent, so that any earlier resource version is older.
func (s *Secrets) read(ctx context.Context, key types.NamespacedName, known string) (latestSecret, error) {
	for range readAttempts {
		under := s.begin(key)
		secret, err := s.ask(ctx, key)
		if s.end(under, secret, err) {
			continue
		}
		if err != nil {
			return latestSecret{}, err
		}
		return latestSecret{secret.Data, version(secret), secret.ResourceVersion,
			latest(secret.ResourceVersion, known, under.known)}, nil
	}
	return latestSecret{}, fmt.Errorf("secret %s changes faster than it can be read", key)
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

// held returns the Secret that the watch delivered a moment ago; nil if there is none. A later word would have ended
// the holding.
func (s *Secrets) held(key types.NamespacedName) *latestSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh, found := s.fresh[key]
	if !found || !s.clock.Now().Before(fresh.expires) {
		return nil
	}
	return &latestSecret{fresh.data, fresh.version, fresh.resourceVersion,
		latest(fresh.resourceVersion, s.positionLocked(key.Namespace))}
}

// positionLocked returns the position up to which all changes in a namespace were reported.
func (s *Secrets) positionLocked(namespace string) string {
	if s.namespaces[0] == metav1.NamespaceAll {
		namespace = metav1.NamespaceAll
	}
	return s.positions[namespace]
}

// begin records that a read begins.
func (s *Secrets) begin(key types.NamespacedName) *read {
	s.mu.Lock()
	defer s.mu.Unlock()
	under := &read{key: key, known: latest(s.positionLocked(key.Namespace), s.answered)}
	s.reads[under] = struct{}{}
	return under
}

// end takes the answer to a read, and reports whether it is older than a word that came meanwhile.
func (s *Secrets) end(under *read, secret *corev1.Secret, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reads, under)
	switch {
	case apierrors.IsNotFound(err):
		// An absence has no version: a word that came meanwhile may be newer.
		if !under.overtaken {
			s.forgetLocked(under.key)
		}
		return under.overtaken
	case err != nil:
		return false
	case under.overtaken && (under.version == "" || older(secret.ResourceVersion, under.version)):
		return true
	}
	if s.answered == "" || older(s.answered, secret.ResourceVersion) {
		s.answered = secret.ResourceVersion
	}
	if fresh, found := s.fresh[under.key]; found && older(fresh.resourceVersion, secret.ResourceVersion) {
		s.forgetLocked(under.key)
	}
	return false
}

func version(secret *corev1.Secret) string { return string(secret.UID) + "/" + secret.ResourceVersion }

// written takes the word that a Secret was created or changed.
func (s *Secrets) written(secret *corev1.Secret) {
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	s.mu.Lock()
	s.overtakeLocked(func(r *read) bool { return r.key == key }, secret.ResourceVersion)
	s.forgetLocked(key)
	s.holdLocked(key, secret)
	onChange := s.onChange
	s.mu.Unlock()
	onChange(key, version(secret))
}

// deleted takes the word that a Secret was deleted.
func (s *Secrets) deleted(secret *corev1.Secret) {
	key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
	s.mu.Lock()
	s.overtakeLocked(func(r *read) bool { return r.key == key }, "")
	s.forgetLocked(key)
	onChange := s.onChange
	s.mu.Unlock()
	onChange(key, "")
}

// missed records that words may have been lost. Resource versions may have turned back meanwhile, with a restored
// etcd.
func (s *Secrets) missed() {
	s.mu.Lock()
	s.overtakeLocked(func(*read) bool { return true }, "")
	s.fresh, s.bytes, s.answered, s.positions = map[types.NamespacedName]freshSecret{}, 0, "", map[string]string{}
	onGap := s.onGap
	s.mu.Unlock()
	onGap()
}

func (s *Secrets) overtakeLocked(concerned func(*read) bool, version string) {
	for under := range s.reads {
		if !concerned(under) || under.overtaken && under.version == "" {
			continue // After a deletion or a gap no later version says enough.
		}
		under.overtaken, under.version = true, version
	}
}

func (s *Secrets) holdLocked(key types.NamespacedName, secret *corev1.Secret) {
	size := freshOverhead
	for _, value := range secret.Data {
		size += len(value)
	}
	if s.bytes+size > freshBytes || s.answered != "" && !notOlder(secret.ResourceVersion, s.answered) {
		return
	}
	s.fresh[key] = freshSecret{maps.Clone(secret.Data), version(secret), secret.ResourceVersion,
		size, s.clock.Now().Add(freshFor)}
	s.bytes += size
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
		if !now.Before(fresh.expires) {
			s.forgetLocked(key)
		}
	}
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
