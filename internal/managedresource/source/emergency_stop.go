package source

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/cluster"
)

const (
	// AnnotationEmergencyStop is the annotation by which Gardener stops the reconciliation of a seed's shoots; only
	// the value true counts, as there.
	AnnotationEmergencyStop = "shoot.gardener.cloud/emergency-stop-reconciliations"
	// EmergencyStopNamespace is the Namespace of the source with that annotation.
	EmergencyStopNamespace = "garden"
	// shootNamespacePrefix begins the names of all control planes' namespaces, also of those from before the double
	// hyphen.
	shootNamespacePrefix = "shoot-"
	// refusedRetry is the pause before a refused request is repeated: a process without the right is not to fill audit
	// logs.
	refusedRetry = 10 * time.Minute
)

// EmergencyStop follows the annotation on a Namespace of the source that stops the ManagedResources of all shoots
// (MRX-26). Nil never stops anything.
type EmergencyStop struct {
	source kubernetes.Interface
	// gauge is 1 while the stop is in force.
	gauge prometheus.Gauge
	log   logr.Logger

	active atomic.Bool
	// answered is closed when the Namespace is known, or may not be read.
	answered  chan struct{}
	answering sync.Once
}

// NewEmergencyStop returns a stop that Start follows.
func NewEmergencyStop(source kubernetes.Interface, gauge prometheus.Gauge, log logr.Logger) *EmergencyStop {
	return &EmergencyStop{source: source, gauge: gauge, log: log, answered: make(chan struct{})}
}

// Stops reports whether the ManagedResources of a namespace are stopped.
func (s *EmergencyStop) Stops(namespace string) bool {
	return s != nil && s.active.Load() && strings.HasPrefix(namespace, shootNamespacePrefix)
}

// Wait waits until the Namespace is known, so that no run begins before its stop is seen. It does not wait for a
// missing right.
func (s *EmergencyStop) Wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case <-s.answered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start follows the Namespace until the context ends.
func (s *EmergencyStop) Start(ctx context.Context) error {
	client := s.source.CoreV1().Namespaces()
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = "metadata.name=" + EmergencyStopNamespace
		return options
	}
	lists := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
			err = s.unlessRefused(ctx, func() error {
				list, err = client.List(ctx, selected(options))
				return err
			})
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (events watch.Interface, err error) {
			err = s.unlessRefused(ctx, func() error {
				events, err = client.Watch(ctx, selected(options))
				return err
			})
			return events, err
		},
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(cluster.Gapless(lists), s.source),
		ObjectType:    &corev1.Namespace{},
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    s.seen,
			UpdateFunc: func(_, object any) { s.seen(object) },
			DeleteFunc: func(any) { s.set(false) },
		},
	})
	go func() {
		select {
		case <-informer.HasSyncedChecker().Done():
			s.answering.Do(func() { close(s.answered) })
		case <-ctx.Done():
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

// unlessRefused sends a request, and repeats it as long as the right is missing. A missing right is logged once, and
// nothing waits for it.
func (s *EmergencyStop) unlessRefused(ctx context.Context, request func() error) error {
	for {
		err := request()
		if !apierrors.IsForbidden(err) {
			return err
		}
		s.answering.Do(func() {
			s.log.Info("An emergency stop is not seen, as the Namespace may not be watched", "namespace", EmergencyStopNamespace,
				"reason", err.Error())
			close(s.answered)
		})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(refusedRetry):
		}
	}
}

func (s *EmergencyStop) seen(object any) {
	if namespace, is := object.(*corev1.Namespace); is {
		s.set(namespace.Annotations[AnnotationEmergencyStop] == "true")
	}
}

func (s *EmergencyStop) set(active bool) {
	if s.active.Swap(active) == active {
		return
	}
	value := 0.0
	if active {
		value = 1
	}
	s.gauge.Set(value)
	s.log.Info("Emergency stop", "active", active, "namespace", EmergencyStopNamespace)
}
