package target

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-project/espalier/internal/ledger"
)

const (
	// unservedRetry is how often a kind that the target does not serve is looked for (MRT-9).
	unservedRetry = 10 * time.Second
	// linger keeps the watch of a kind that is no longer in use: contents often leave and come back.
	linger = 30 * time.Second
	// minWatchTimeout makes a watch last one to two hours, so that an idle process sends next to nothing.
	minWatchTimeout = time.Hour
)

// scope is what one watch covers: a kind in all namespaces or in one, or a single object.
type scope struct {
	gvk       schema.GroupVersionKind
	namespace string
	name      string
}

// Watches keeps a watch for every kind in use.
type Watches struct {
	client *Client
	ledger *ledger.Ledger
	view   View
	// namespaces restrict watches of namespaced kinds; empty means one watch for all of them.
	namespaces    []string
	labelSelector string
	disabled      bool
	log           logr.Logger

	mu      sync.Mutex
	ctx     context.Context // nil until started
	active  map[scope]*activeWatch
	byOwner map[ledger.Owner]map[scope]struct{}
	extra   map[scope]*activeWatch

	autoscalers *Autoscalers
}

type activeWatch struct {
	users  int
	cancel context.CancelFunc
	// live is true from a complete list until an error.
	live atomic.Bool
	stop *time.Timer
	// served wakes a watch that waits for its kind to be served.
	served chan struct{}
}

// WatchOptions shape the watches.
type WatchOptions struct {
	Namespaces    []string
	LabelSelector string
	View          View
	// Disabled watches nothing (OLD-31).
	Disabled bool
	Log      logr.Logger
}

// NewWatches returns watches that start when Start is called.
func NewWatches(client *Client, l *ledger.Ledger, options WatchOptions) *Watches {
	w := &Watches{
		client: client, ledger: l, view: options.View, namespaces: options.Namespaces, labelSelector: options.LabelSelector,
		disabled: options.Disabled, log: options.Log,
		active: map[scope]*activeWatch{}, byOwner: map[ledger.Owner]map[scope]struct{}{}, extra: map[scope]*activeWatch{},
	}
	w.autoscalers = newAutoscalers(w)
	return w
}

// Start runs the watches until the context ends.
func (w *Watches) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for s, a := range w.active {
		w.runLocked(s, a)
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// View returns what decides about drift and health.
func (w *Watches) View() View { return w.view }

// Autoscalers returns the index of what is scaled horizontally.
func (w *Watches) Autoscalers() *Autoscalers { return w.autoscalers }

// Track sets the objects of a ManagedResource, in the ledger and for the watches.
func (w *Watches) Track(owner ledger.Owner, refs []ledger.Ref) {
	w.ledger.Track(owner, refs)
	wanted := map[scope]struct{}{}
	for _, ref := range refs {
		wanted[w.scopeOf(ref)] = struct{}{}
		if ref.Group == "apps" && ref.Kind == "Deployment" {
			for _, gvk := range []schema.GroupVersionKind{podKind, replicaSetKind} {
				wanted[w.scopeOf(ledger.Ref{Key: ledger.Key{GroupKind: gvk.GroupKind(), Namespace: ref.Namespace}, Version: gvk.Version})] = struct{}{}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	previous := w.byOwner[owner]
	for s := range wanted {
		if _, had := previous[s]; !had {
			w.useLocked(s)
		}
	}
	for s := range previous {
		if _, has := wanted[s]; !has {
			w.releaseLocked(s)
		}
	}
	if len(wanted) == 0 {
		delete(w.byOwner, owner)
	} else {
		w.byOwner[owner] = wanted
	}
}

// Served tells that an object of a kind was just written, so that there is no need to wait for the kind any longer.
func (w *Watches) Served(ref ledger.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.active[w.scopeOf(ref)]; a != nil && !a.live.Load() {
		select {
		case a.served <- struct{}{}:
		default:
		}
	}
}

// Covered says whether a change of the object would be noticed.
func (w *Watches) Covered(ref ledger.Ref) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.active[w.scopeOf(ref)]
	return a != nil && a.live.Load()
}

// PodsCovered says whether the Pods of a Deployment are counted by watches.
func (w *Watches) PodsCovered(namespace string) bool {
	for _, gvk := range []schema.GroupVersionKind{podKind, replicaSetKind} {
		if !w.Covered(ledger.Ref{Key: ledger.Key{GroupKind: gvk.GroupKind(), Namespace: namespace}, Version: gvk.Version}) {
			return false
		}
	}
	return true
}

func (w *Watches) scopeOf(ref ledger.Ref) scope {
	s := scope{gvk: ref.GVK()}
	switch {
	case ref.Unlabelled:
		s.namespace, s.name = ref.Namespace, ref.Name
	case len(w.namespaces) > 0 && !slices.Contains(w.namespaces, metav1.NamespaceAll):
		// Only namespaces with managed objects are watched, configured ones and others alike (MRB-37).
		s.namespace = ref.Namespace
	}
	return s
}

func (w *Watches) useLocked(s scope) {
	a := w.active[s]
	if a == nil {
		a = &activeWatch{served: make(chan struct{}, 1)}
		w.active[s] = a
		if w.ctx != nil {
			w.runLocked(s, a)
		}
	}
	if a.stop != nil {
		a.stop.Stop()
		a.stop = nil
	}
	a.users++
}

func (w *Watches) releaseLocked(s scope) {
	a := w.active[s]
	if a == nil {
		return
	}
	if a.users--; a.users > 0 {
		return
	}
	a.stop = time.AfterFunc(linger, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.users > 0 || w.active[s] != a {
			return
		}
		delete(w.active, s)
		if a.cancel != nil {
			a.cancel()
		}
	})
}

func (w *Watches) runLocked(s scope, a *activeWatch) {
	if w.disabled {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	a.cancel = cancel
	go w.run(ctx, s, a)
}

// run watches one scope: it waits until the kind is served, and then follows it.
func (w *Watches) run(ctx context.Context, s scope, a *activeWatch) {
	log := w.log.WithValues("groupVersionKind", s.gvk.String())
	for {
		mapping, err := w.client.mapping(s.gvk)
		if err == nil {
			w.follow(ctx, s, a, mapping)
			return
		}
		log.V(1).Info("Kind cannot be watched yet", "reason", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-a.served:
		case <-time.After(unservedRetry):
		}
	}
}

func (w *Watches) follow(ctx context.Context, s scope, a *activeWatch, mapping *meta.RESTMapping) {
	selector := func(options *metav1.ListOptions) {
		if s.name != "" {
			options.FieldSelector = "metadata.name=" + s.name
		} else {
			options.LabelSelector = w.labelSelector
		}
	}
	namespace := s.namespace
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	var source *cache.ListWatch
	var expected runtime.Object
	switch {
	case s.gvk == podKind && s.name == "":
		// Typed Pods: there may be many, and Protocol Buffers cost a fifth of what JSON costs.
		pods := w.client.core.Pods(namespace)
		source, expected = listWatch(selector, pods.List, pods.Watch), &corev1.Pod{}
	case w.view.Whole(s.gvk):
		objects := w.client.dynamic.Resource(mapping.Resource).Namespace(namespace)
		source = listWatch(selector, objects.List, objects.Watch)
	default:
		metadata := w.client.metadata.Resource(mapping.Resource).Namespace(namespace)
		source, expected = listWatch(selector, metadata.List, metadata.Watch), &metav1.PartialObjectMetadata{}
	}

	log := w.log.WithValues("groupVersionKind", s.gvk.String(), "metadataOnly", !w.view.Whole(s.gvk))
	log.V(1).Info("Watching")
	watching.Inc()
	defer watching.Dec()
	reflector := cache.NewReflectorWithOptions(source, expected, &sink{watches: w, scope: s, active: a}, cache.ReflectorOptions{
		Name: "target " + s.gvk.String(), MinWatchTimeout: minWatchTimeout, Logger: &log,
	})
	reflector.RunWithContext(ctx)
	a.live.Store(false)
}

// listWatch counts the requests and narrows them to a selection.
func listWatch[L runtime.Object](selector func(*metav1.ListOptions),
	list func(context.Context, metav1.ListOptions) (L, error),
	follow func(context.Context, metav1.ListOptions) (watch.Interface, error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selector(&options)
			count("list")
			return list(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selector(&options)
			count("watch")
			return follow(ctx, options)
		},
	}
}
