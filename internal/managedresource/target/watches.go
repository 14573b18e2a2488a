package target

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/managedresource/objects"
)

const (
	// linger is the time for which the watch of a kind is kept when the kind is no longer in use: objects are often
	// removed and created again.
	linger = 30 * time.Second
	// minWatchTimeout makes a watch last one to two hours, so that an idle process sends few requests.
	minWatchTimeout = time.Hour
)

// scope is the range of one watch: the labelled objects of a kind in all namespaces or in one, or all objects.
type scope struct {
	gvk       schema.GroupVersionKind
	namespace string
	all       bool
}

// Watches keeps a watch for every kind in use.
type Watches struct {
	client  *Client
	tracker *objects.Tracker
	view    View
	// namespaces restrict watches of namespaced kinds; empty means one watch for all of them.
	namespaces    []string
	labelSelector string
	disabled      bool
	metrics       *Metrics
	log           logr.Logger

	mu      sync.Mutex
	ctx     context.Context // nil until started
	active  map[scope]*activeWatch
	byOwner map[objects.Owner]map[scope]struct{}

	live *live

	autoscalers *Autoscalers
	// after is time.AfterFunc, except in tests.
	after func(time.Duration, func())
}

// WatchOptions are the options of Watches.
type WatchOptions struct {
	Namespaces    []string
	LabelSelector string
	View          View
	// Disabled disables all watches (OLD-31).
	Disabled bool
	// Metrics may be nil: then no metrics are exposed.
	Metrics *Metrics
	Log     logr.Logger
}

// NewWatches returns Watches, which begin when Start is called.
func NewWatches(client *Client, l *objects.Tracker, options WatchOptions) *Watches {
	if options.Metrics == nil {
		options.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	w := &Watches{
		client: client, tracker: l, view: options.View, namespaces: options.Namespaces, labelSelector: options.LabelSelector,
		disabled: options.Disabled, metrics: options.Metrics, log: options.Log,
		active: map[scope]*activeWatch{}, byOwner: map[objects.Owner]map[scope]struct{}{}, live: newLive(),
		after: func(wait time.Duration, do func()) { time.AfterFunc(wait, do) },
	}
	w.autoscalers = newAutoscalers(w)
	w.view.selector, _ = labels.Parse(options.LabelSelector) // The value of the label is valid.
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
	w.lookForKinds(ctx)
	return nil
}

// TakeLocks takes and releases each lock once, so that a probe detects a lock that is never released (PRC-59).
func (w *Watches) TakeLocks() {
	w.Covered(objects.Ref{})
	w.autoscalers.Scales([]objects.ID{{}})
	w.live.take("", 0)
}

// View returns the View that decides about drift and health.
func (w *Watches) View() View { return w.view }

// Autoscalers returns the index of horizontally scaled objects.
func (w *Watches) Autoscalers() *Autoscalers { return w.autoscalers }

// Track sets the objects of a ManagedResource in the tracker, and starts and stops the watches of their kinds.
func (w *Watches) Track(owner objects.Owner, refs []objects.Ref) {
	w.tracker.Track(owner, refs)
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.scopesOf(refs)
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

// scopesOf returns the scopes whose watches report the objects.
func (w *Watches) scopesOf(refs []objects.Ref) map[scope]struct{} {
	wanted := map[scope]struct{}{}
	for _, ref := range refs {
		wanted[w.scopeOf(ref)] = struct{}{}
	}
	return wanted
}

// Served handles a write of an object, which proves that its kind is served: a watch that waits for the kind need not
// wait any longer.
func (w *Watches) Served(ref objects.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.active[w.scopeOf(ref)]; a != nil && !a.covers() {
		a.wake()
	}
}

// Covered reports whether a watch would now report a change of the object.
func (w *Watches) Covered(ref objects.Ref) bool { return w.scopeCovered(w.scopeOf(ref)) }

func (w *Watches) scopeCovered(s scope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.active[s]
	return a != nil && a.covers()
}

// AwaitCovered reports whether a watch would report a change of the object. It waits up to listedWithin for the first
// list of the kind, and up to listedAgainWithin for the list after the end of a watch: a read would only return what
// the list is about to report.
func (w *Watches) AwaitCovered(ctx context.Context, ref objects.Ref) bool {
	return w.awaitScope(ctx, w.scopeOf(ref))
}

func (w *Watches) awaitScope(ctx context.Context, s scope) bool {
	w.mu.Lock()
	a := w.active[s]
	w.mu.Unlock()
	if a == nil {
		return false
	}
	ctx, cancel := context.WithDeadline(ctx, a.awaitUntil())
	defer cancel()
	return a.await(ctx) == nil
}

func (w *Watches) scopeOf(ref objects.Ref) scope {
	return scope{gvk: ref.GVK(), namespace: w.watchedIn(ref.Namespace)}
}

// watchedIn returns the namespace of the watch that reports a namespace, empty for the watch of all namespaces.
func (w *Watches) watchedIn(namespace string) string {
	if len(w.namespaces) > 0 && !slices.Contains(w.namespaces, metav1.NamespaceAll) {
		// Only namespaces with managed objects are watched, whether they are configured or not (MRB-37).
		return namespace
	}
	return ""
}

// use watches a scope from the first call until the process ends.
func (w *Watches) use(s scope, once *sync.Once) *activeWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	once.Do(func() { w.useLocked(s) })
	return w.active[s]
}

func (w *Watches) useLocked(s scope) {
	a := w.active[s]
	if a == nil {
		a = newActiveWatch()
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
	a.begins()
	go w.run(ctx, s, a)
}

// run watches one scope: it waits until the kind is served, follows the scope until the mapping is outdated, and
// starts again.
func (w *Watches) run(ctx context.Context, s scope, a *activeWatch) {
	log := w.log.WithValues("groupVersionKind", s.gvk.String())
	for ctx.Err() == nil {
		served, err := w.client.mappings.of(ctx, s.gvk)
		switch {
		case err != nil:
			a.lost(err)
			log.V(1).Info("Kind cannot be watched yet", "reason", err.Error())
		case served.unreadable:
			a.lost(served.readable(""))
			log.V(1).Info("Kind cannot be watched")
		default:
			w.follow(ctx, s, a, served)
		}
		// A kind whose objects cannot be read is not looked up periodically: only a new definition can change that.
		a.waits.Store(err != nil || !served.unreadable)
		select {
		case <-ctx.Done():
		case <-a.served:
		}
		a.waits.Store(false)
	}
}
