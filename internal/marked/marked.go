// Package marked stores which ConfigMaps and Secrets of the target the garbage collector has marked. It removes the
// mark when an object that refers to them passes this process: one that the engine applies, or one that a webhook
// admits.
//
// In the process with the collector, the collector passes its lists and marks to the Set, so that references cost no
// request. A replica without the collector lists the marked objects when a reference passes, but at most once in a
// period, which is shorter than the time from a mark to the deletion.
package marked

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/api/resources/v1alpha1/references"
	internalreferences "github.com/espalier-project/espalier/internal/controller/garbagecollector/references"
)

const (
	// budget limits the time for which a reference waits for the removal of marks. Webhooks have ten seconds in all.
	budget = 2 * time.Second
	// atOnce is the number of objects that one referrer unmarks: a Pod refers to a few. The collector's own lists find
	// the reference to others.
	atOnce = 64
	// retryReads is the pause after a failed list, so that a slow API server delays one reference and not all.
	retryReads = 10 * time.Second
	// page is the number of objects in a page of a list.
	page = 500
)

// Values of the metrics' label for the component that removes marks.
const (
	ByCollector = "collector"
	ByEngine    = "managedresource"
	ByWebhook   = "webhook"
)

// Key names a ConfigMap or Secret.
type Key struct {
	Kind            references.Kind
	Namespace, Name string
}

// KindNames are the names of kinds in requests.
var KindNames = map[references.Kind]string{references.ConfigMap: "ConfigMap", references.Secret: "Secret"}

// Options are the dependencies of a Set; each is required.
type Options struct {
	Target client.Client
	// Namespaces restrict the known objects; empty means all.
	Namespaces []string
	// Period is the time between two runs of the collector.
	Period  time.Duration
	Clock   clock.PassiveClock
	Metrics *Metrics
	Log     logr.Logger
}

// Set has the marked objects that this process has learned of. A nil Set has no objects and sends no requests,
// because no object is collected then.
type Set struct {
	Options
	// looking is a semaphore for the goroutine that lists.
	looking chan struct{}

	mu sync.Mutex
	// known are the marked objects by namespace. spared are those of them that an object refers to and whose mark
	// could not be removed yet.
	known    map[string]map[Key]struct{}
	unmarked map[Key]struct{}
	// kept is set once the collector of this process reports the marked objects, so that lists are not needed any
	// more.
	kept           bool
	readAt, failed time.Time
}

// New returns an empty Set.
func New(o Options) *Set {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{metav1.NamespaceAll}
	}
	return &Set{Options: o, looking: make(chan struct{}, 1), known: map[string]map[Key]struct{}{}, unmarked: map[Key]struct{}{}}
}

// Replace sets the marked objects, and returns the former ones. The collector calls it at the beginning of each run. Objects stay
// spared until they are unmarked.
func (s *Set) Replace(all []Key) (before []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.known {
		before = slices.AppendSeq(before, maps.Keys(in))
	}
	s.kept = true
	s.setLocked(all)
	return before
}

func (s *Set) setLocked(all []Key) {
	s.known = map[string]map[Key]struct{}{}
	unmarked := s.unmarked
	s.unmarked = map[Key]struct{}{}
	for _, key := range all {
		s.addLocked(key)
		if _, is := unmarked[key]; is {
			s.unmarked[key] = struct{}{}
		}
	}
}

func (s *Set) addLocked(key Key) {
	in := s.known[key.Namespace]
	if in == nil {
		in = map[Key]struct{}{}
		s.known[key.Namespace] = in
	}
	in[key] = struct{}{}
}

// Mark adds an object that the collector has marked. The mark is younger than any reference that passed before.
func (s *Set) Mark(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unmarked, key)
	s.addLocked(key)
}

// Forget removes an object that is no longer marked, or no longer exists.
func (s *Set) Forget(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.unmarked, key)
	delete(s.known[key.Namespace], key)
}

// Unmarked reports whether an object that passed this process referred to this object while it was marked.
func (s *Set) Unmarked(key Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.unmarked[key]
	return is
}

// Count returns the number of known marked objects.
func (s *Set) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, in := range s.known {
		n += len(in)
	}
	return n
}

// Refers removes the marks of the objects that an object refers to, before that is written or admitted. It sends no
// request if nothing in the namespace is marked. A failure to remove a mark is logged and does not block the write:
// the collector of this process spares the object.
func (s *Set) Refers(ctx context.Context, by, namespace string, refers func() []references.Reference) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	s.refresh(ctx)
	if !s.knows(namespace) {
		return
	}
	for _, key := range s.spare(namespace, refers()) {
		if err := s.Unmark(ctx, by, key); err != nil {
			s.Log.Info("Could not remove the mark of an object that is referenced again", "kind", KindNames[key.Kind], "namespace", key.Namespace, "name", key.Name, "reason", err.Error())
		}
	}
}

func (s *Set) knows(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known[namespace]) > 0
}

// spare returns the marked objects among the references, and spares them from now on.
func (s *Set) spare(namespace string, refers []references.Reference) []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Key
	for _, reference := range refers {
		key := Key{reference.Kind, namespace, reference.Name}
		if _, isMarked := s.known[namespace][key]; isMarked && !slices.Contains(found, key) && len(found) < atOnce {
			s.unmarked[key] = struct{}{}
			found = append(found, key)
		}
	}
	return found
}

// Unmark removes the mark of an object. This write makes all deletions fail that a process decided before it.
func (s *Set) Unmark(ctx context.Context, by string, key Key) error {
	gone := map[string]any{resourcesv1alpha1.AnnotationCondemnedAt: nil, resourcesv1alpha1.AnnotationCondemnedAs: nil}
	err := Patch(ctx, s.Target, key, map[string]any{"labels": map[string]any{resourcesv1alpha1.LabelCondemned: nil}, "annotations": gone})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the mark: %w", err)
	}
	if err == nil {
		s.Metrics.unmarked(by)
		s.Log.Info("Removed the mark of an object that is referenced again", "by", by, "kind", KindNames[key.Kind], "namespace", key.Namespace, "name", key.Name)
	}
	s.Forget(key)
	return nil
}

// Patch changes the metadata of a ConfigMap or Secret as the collector.
func Patch(ctx context.Context, target client.Client, key Key, metadata map[string]any) error {
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(KindNames[key.Kind]))
	return target.Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(internalreferences.Collector))
}

// Metrics counts the removed marks.
type Metrics struct{ acquittals *prometheus.CounterVec }

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{acquittals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "espalier_garbage_collector_acquittals_total", Help: "ConfigMaps and Secrets whose mark for deletion was removed because something refers to them, by the finder.",
	}, []string{"by"})}
	registry.MustRegister(m.acquittals)
	return m
}

func (m *Metrics) unmarked(by string) { m.acquittals.WithLabelValues(by).Inc() }
