package targets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/managedresource/targets/holding"
	"github.com/espalier-project/espalier/internal/managedresource/turns"
)

// Options are all that Targets need; each is required, unless it says otherwise.
type Options struct {
	// Config has targets, and the settings that all of them share.
	Config *config.ResourceManagerConfiguration
	// Manager has the cache of the source and its clients, whose requests go through Fair.
	Manager manager.Manager
	// Source is the client of the source for built-in kinds, likewise.
	Source kubernetes.Interface
	// Load reads the kubeconfig of a target. It refuses what makes the process read files or run programs.
	Load func([]byte) (*rest.Config, error)
	// Dial returns the connections to a target; nil for connections of its own.
	Dial func(*rest.Config) (*Connections, error)
	// Identified, if it is set, is called once the identity of the source is known.
	Identified func()
	// Tidy, if it is set, gives memory back that is not in use. It is called when no target has begun for a while.
	Tidy     func()
	Clock    clock.WithTicker
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Targets look after the targets of one process. They run on the leader.
type Targets struct {
	Options
	Secrets  *source.Secrets
	Turns    *turns.Turns
	Stop     *source.EmergencyStop
	Metrics  *controller.Metrics
	Requests *target.Metrics

	metrics  *Metrics
	budget   *answers.Budget
	types    *answers.Types
	feed     *feed
	notes    *kit.Notes
	identity string
	started  atomic.Pointer[error]
	// begun is that a target has begun.
	begun chan struct{}
	// holder is the name of the process in the Leases of its targets, and own the Lease of that name. news is that there
	// are other targets.
	holder  string
	own     resourcelock.Interface
	changed chan struct{}

	mu sync.Mutex
	// candidates are all targets, and members those that the process takes or holds, by namespace.
	candidates map[string]*candidate
	members    map[string]*member
	holdings   *holding.Holdings
	// observed is set once the Leases have been listed, and gone once the process has deleted its own.
	observed, gone bool
	running        sync.WaitGroup
}

// New returns targets that Start manages. It sends no requests.
func New(o Options) *Targets {
	if o.Dial == nil {
		o.Dial = dial
	}
	t := &Targets{
		Options: o, Metrics: controller.NewMetrics(o.Registry), Requests: target.NewMetrics(o.Registry),
		metrics: NewMetrics(o.Registry), feed: newFeed(),
		Secrets:    source.NewSecrets(o.Source.CoreV1(), nil, o.Clock, o.Log.WithName("secrets")),
		notes:      kit.NewNotes(o.Manager.GetClient(), o.Clock, "gardener-resource-manager"),
		candidates: map[string]*candidate{}, members: map[string]*member{}, begun: make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		Turns: engine.NewTurns(engine.Options{Config: o.Config, Source: o.Source, Clock: o.Clock, Registry: o.Registry,
			Log: o.Log}),
	}
	t.Stop = engine.NewEmergencyStop(engine.Options{Config: o.Config, Source: o.Source, Log: o.Log}, t.Metrics)
	t.newHoldings()
	t.budget, t.types = answers.NewBudget(o.Config.Targets.Limits.TotalBytesInFlight.Value(),
		t.metrics.exceeded.Inc), answers.NewTypes()
	return t
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (t *Targets) NeedLeaderElection() bool { return true }

// Ready returns the reason why the start waits, or the obstacle to events from the source; nil where there is no
// leader. No target is waited for.
func (t *Targets) Ready() error {
	if waiting := t.started.Load(); waiting != nil && *waiting != nil {
		return *waiting
	}
	t.mu.Lock()
	observed := t.observed
	t.mu.Unlock()
	if !observed {
		return errUnobserved
	}
	return t.Secrets.Watching()
}

// Start looks after the targets until the context ends.
func (t *Targets) Start(ctx context.Context) error {
	return kit.Run(ctx, t.Manager, t.start)
}

func (t *Targets) start(group *kit.Group) error {
	ctx := group.Context()
	defer t.leave(ctx)
	defer t.running.Wait()
	defer t.withdrawAll()
	if err := t.identifySource(ctx); err != nil {
		return err
	}
	if err := t.followManagedResources(ctx); err != nil {
		return err
	}
	if t.Turns != nil {
		if err := group.Add(manager.RunnableFunc(t.Turns.Start)); err != nil {
			return err
		}
	}
	if t.Stop != nil {
		if err := group.Add(manager.RunnableFunc(t.Stop.Start)); err != nil {
			return err
		}
	}
	t.Secrets.Subscribe(t.secretChanged, t.secretsMissed)
	if err := group.Add(manager.RunnableFunc(t.Secrets.Start)); err != nil {
		return err
	}
	if err := t.Secrets.WaitUntilWatching(ctx, t.Config.Controllers.CacheSyncTimeout.Duration); err != nil {
		return err
	}
	if err := t.Stop.Wait(ctx); err != nil {
		return err
	}
	t.running.Go(func() { t.tidy(ctx) })
	t.waits(nil)
	if t.Config.Targets.Directory != "" {
		return t.followDirectory(ctx)
	}
	return t.followNamespaces(ctx)
}

// identifySource requests the identity of the source until the source answers. An answer without a usable identity ends
// the process.
func (t *Targets) identifySource(ctx context.Context) error {
	identity, err := engine.Identify(ctx,
		engine.Options{Config: t.Config, Manager: t.Manager, Source: t.Source, Clock: t.Clock, Log: t.Log}, t.waits)
	if err != nil {
		return fmt.Errorf("failed during bootstrapping: %w", err)
	}
	t.identity = identity
	t.Log.Info("Using cluster id", "clusterID", identity)
	if t.Identified != nil {
		t.Identified()
	}
	return nil
}

// waits notes what the start waits for; nil for nothing.
func (t *Targets) waits(err error) { t.started.Store(&err) }

// followManagedResources subscribes the feed to all ManagedResources, and waits until the feed knows all of them.
func (t *Targets) followManagedResources(ctx context.Context) error {
	informer, err := t.Manager.GetCache().GetInformer(ctx, &resourcesv1alpha1.ManagedResource{},
		cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	registration, err := informer.AddEventHandler(t.feed)
	if err != nil {
		return err
	}
	if t.Turns != nil {
		if err := t.Turns.Follow(informer); err != nil {
			return err
		}
	}
	t.waits(errWaiting)
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// errWaiting is the reason why the start is not over.
var errWaiting = errors.New("waiting for the ManagedResources of the source cluster")

// candidate is a target that the process may hold: a namespace of the source with credentials.
type candidate struct {
	name, namespace string
	resolve         resolver
	log             logr.Logger
	begin           func(holding.Take)
	// uid is that of the namespace, if it is known. seen is the last content of an entry, and foreign the holder of the
	// Lease that is no process of ours.
	uid           types.UID
	seen, foreign string
	// warned is set once an Event has reported that the target is not managed. The lock of Targets guards all that
	// changes.
	warned bool
}

// offer makes a namespace a target; another entry for the same namespace is an error.
func (t *Targets) offer(ctx context.Context, name, namespace string, uid types.UID, resolve resolver,
	seen string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.candidates[namespace]
	switch {
	case c == nil:
		c = &candidate{name: name, namespace: namespace, resolve: resolve, log: t.Log.WithValues("target", name), seen: seen}
		c.begin = func(take holding.Take) { t.beginLocked(ctx, c, take) }
		t.candidates[namespace] = c
		notify(t.changed)
	case c.name != name:
		return fmt.Errorf("namespace %s is that of target %s", namespace, c.name)
	case c.seen != seen && t.members[namespace] != nil:
		notify(t.members[namespace].changed)
	}
	c.uid, c.seen = uid, seen
	return nil
}

// withdraw ends the work for a target.
func (t *Targets) withdraw(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.candidates[namespace]
	if c == nil {
		return
	}
	delete(t.candidates, namespace)
	t.endLocked(namespace, "It is no target any more")
	if c.foreign != "" {
		t.metrics.forget(c.name)
	}
}

func (t *Targets) withdrawAll() {
	for _, c := range t.offered() {
		t.withdraw(c.namespace)
	}
}

// offered returns all targets.
func (t *Targets) offered() []*candidate {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.candidates))
}

// beginLocked has a member take the Lease of a target, and run its engine then.
func (t *Targets) beginLocked(ctx context.Context, c *candidate, take holding.Take) {
	own, stop := context.WithCancel(ctx)
	m := &member{Targets: t, candidate: c, changed: make(chan struct{}, 1), complete: make(chan struct{}), stop: stop,
		done: make(chan struct{})}
	t.members[c.namespace] = m
	t.running.Go(func() { m.run(own, take) })
}

// endLocked ends the engine of a target; its Lease is released then.
func (t *Targets) endLocked(namespace, why string) {
	if m := t.members[namespace]; m != nil {
		m.log.Info("The target is not managed any more", "reason", why)
		m.stop()
	}
}

// tidyAfter is the time without a new target after which memory is given back: a thousand targets are verified within
// that time.
const tidyAfter = time.Minute

// tidy has memory given back after starts, until the context ends. A start takes several times the memory that its
// targets need from then on, and a process with nothing to do would keep most of it: the garbage collector frees memory
// while there is more garbage, and there is none.
func (t *Targets) tidy(ctx context.Context) {
	if t.Tidy == nil {
		return
	}
	timer := t.Clock.NewTimer(tidyAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.begun:
			timer.Reset(tidyAfter)
		case <-timer.C():
			t.Tidy()
		}
	}
}

// secretChanged is called when a Secret was written or deleted.
func (t *Targets) secretChanged(key types.NamespacedName, _ string) {
	c := t.Config.Targets
	if !slices.ContainsFunc([]*config.SecretKey{c.Kubeconfig, c.CA, c.Token, c.Overrides},
		func(named *config.SecretKey) bool {
			return named != nil && named.SecretName == key.Name
		}) {
		return
	}
	t.mu.Lock()
	m := t.members[key.Namespace]
	t.mu.Unlock()
	if m != nil {
		notify(m.changed)
	}
}

// secretsMissed takes that changes of Secrets may have been missed.
func (t *Targets) secretsMissed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.members {
		notify(m.changed)
	}
}

var _ manager.LeaderElectionRunnable = &Targets{}

// namespaceKind is the kind by which targets are found.
var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
