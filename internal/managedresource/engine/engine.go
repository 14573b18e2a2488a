// Package engine connects the parts that reconcile ManagedResources: readers and watches of the source, writers and
// watches of the target, the tracker between them, and the controllers.
//
// The executable constructs an engine with real clusters, the simulation with simulated ones. The package must not
// depend on the parts that a process has once, such as ports, signals, leader election and probes.
package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	healthcontroller "github.com/espalier-project/espalier/internal/managedresource/health"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/marked"
)

// Options are the dependencies of an engine. Each is required unless its comment says otherwise.
type Options struct {
	Config *config.ResourceManagerConfiguration
	// Manager runs the controllers. Its scheme is Scheme.
	Manager manager.Manager
	// Source is the client of the source for built-in kinds; Connection is used for the cache of ManagedResources.
	Source     kubernetes.Interface
	Connection cluster.Connection
	Target     cluster.Connection
	// Marked removes the deletion marks of ConfigMaps and Secrets that applied objects refer to; nil if the garbage
	// collector is off.
	Marked *marked.Set
	// SameCluster is true if the target is the source.
	SameCluster bool
	// Identified, if set, is called once on the leader, as soon as the identity of the source is known: other parts
	// of the leader can then start.
	Identified func()
	// Begun, if set, is called once, as soon as the controllers have been added.
	Begun    func()
	Clock    clock.PassiveClock
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Engine applies ManagedResources and assesses their health. It is a runnable of the leader.
type Engine struct {
	Options
	requests *target.Metrics
	metrics  *controller.Metrics
	events   *source.Events

	mu      sync.Mutex
	current *run
	// waiting is the reason why the engine waits during its start; nil if it does not wait.
	waiting error
}

// run is the engine between two starts. Everything in memory about the clusters ends with it.
type run struct {
	*Engine
	// source has the cache of the ManagedResources.
	source  *cluster.Cluster
	client  *target.Client
	watches *target.Watches
	tracker *objects.Tracker
	secrets *source.Secrets
	// restored receives the proof that a store was restored.
	restored chan string
}

// Scheme returns the scheme that the manager must have.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// New returns an engine. It sends no requests before it is started.
func New(options Options) (*Engine, error) {
	for _, once := range []*func(){&options.Identified, &options.Begun} {
		if *once != nil {
			*once = sync.OnceFunc(*once)
		}
	}
	e := &Engine{
		Options: options, requests: target.NewMetrics(options.Registry), metrics: controller.NewMetrics(options.Registry),
		events: source.NewEvents(options.Source.CoreV1(), options.Clock),
	}
	r, err := e.newRun()
	e.current = r
	return e, err
}

func (e *Engine) newRun() (*run, error) {
	r := &run{Engine: e, tracker: objects.New(), restored: make(chan string, 1)}
	cfg := e.Config
	var err error
	if r.source, err = e.Connection.Caching(feature.Source, cluster.Options{
		Scheme: e.Manager.GetScheme(), Reads: Reads(cfg), Namespaces: cfg.SourceClientConnection.Namespaces,
		Resync: &cfg.SourceClientConnection.CacheResyncPeriod.Duration, Restored: r.storeRestored,
	}); err != nil {
		return nil, fmt.Errorf("source cluster: %w", err)
	}
	if r.client, err = target.NewClient(e.Target.REST, e.Target.HTTP, e.requests); err != nil {
		return nil, err
	}
	r.watches = target.NewWatches(r.client, r.tracker, target.WatchOptions{
		Namespaces:    cfg.TargetClientConnection.Namespaces,
		LabelSelector: resourcesv1alpha1.LabelManagedBy + "=" + *cfg.Controllers.ManagedResource.ManagedByLabelValue,
		View:          target.View{Health: healthcheck.Options{CustomResources: ptr.Deref(cfg.Controllers.Health.CustomResources, false)}},
		Disabled:      ptr.Deref(cfg.TargetClientConnection.DisableCachedClient, false),
		Metrics:       e.requests,
		Log:           e.Log.WithName("target"),
	})
	r.tracker.Subscribe(objects.Subscriber{Restored: r.storeRestored})
	r.secrets = source.NewSecrets(e.Source.CoreV1(), cfg.SourceClientConnection.Namespaces, e.Log.WithName("secrets"))
	return r, nil
}

// TakeLocks takes and releases the locks that all runs need. It blocks if one of them is never released (PRC-59).
func (e *Engine) TakeLocks() {
	r := e.present()
	r.tracker.Get(objects.ID{})
	r.watches.TakeLocks()
}

func (e *Engine) present() *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// ManagedResources returns the ManagedResources in the cache, which must not be changed.
func (e *Engine) ManagedResources(ctx context.Context) (*resourcesv1alpha1.ManagedResourceList, error) {
	list := &resourcesv1alpha1.ManagedResourceList{}
	return list, e.present().source.Cache.List(ctx, list)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e *Engine) NeedLeaderElection() bool { return true }

// start determines the identity of the source cluster and adds the controllers (PRC-11).
func (r *run) start(group *kit.Group) error {
	ctx, timeout := group.Context(), r.Config.Controllers.CacheSyncTimeout.Duration
	identity, err := r.awaitSource(ctx)
	if err != nil {
		return fmt.Errorf("failed during bootstrapping: %w", err)
	}
	r.Log.Info("Using cluster id", "clusterID", identity)
	if r.Identified != nil {
		r.Identified()
	}
	if err := group.Add(r.source); err != nil {
		return err
	}
	// The informer lists the existing ManagedResources before the controllers are added.
	informer, err := r.source.Cache.GetInformer(ctx, &resourcesv1alpha1.ManagedResource{},
		cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	class := meta.NewClass(*r.Config.Controllers.ResourceClass)
	if _, err := informer.AddEventHandler(r.metrics.Follow(class)); err != nil {
		return err
	}
	reconciler, health := r.reconcilers(class, identity)
	// The subscription precedes the watches of Secrets and the first run, so that no change of a Secret is missed.
	r.secrets.Subscribe(reconciler.Triggers.SecretChanged, reconciler.Triggers.SecretsMissed)
	if err := group.Add(leaderOnly{r.secrets.Start}); err != nil {
		return err
	}
	if err := r.secrets.WaitUntilWatching(ctx, timeout); err != nil {
		return err
	}
	r.expect(ctx, reconciler, timeout)
	if err := r.addAll(group, reconciler, health, timeout); err != nil {
		return err
	}
	if r.Begun != nil {
		r.Begun()
	}
	return nil
}

// reconcilers returns the controllers, and subscribes them to changes of objects and Secrets.
func (r *run) reconcilers(class meta.Class,
	identity string) (*controller.Reconciler, *healthcontroller.Reconciler) {
	statuses := source.NewStatuses(r.source.Cache, r.source.Client, r.source.Client, r.Clock, r.events)
	statuses.Restored = r.storeRestored
	statuses.Readiness = ptr.Deref(r.Config.Controllers.ManagedResource.ReadyCondition, false)
	assessor := target.NewAssessor(r.client, r.tracker, r.watches, r.Clock)
	health := healthcontroller.New(healthcontroller.Options{Config: r.Config.Controllers.Health, Class: class,
		Statuses: statuses, Clock: r.Clock, Assess: assessor.Assess, Confirm: assessor.Confirm})
	reconciler := controller.New(controller.Options{
		Config: r.Config.Controllers.ManagedResource, Class: class, Identity: identity,
		GarbageCollector: r.Config.Controllers.GarbageCollector.Enabled, Marked: r.Marked,
		Statuses: statuses, Secrets: r.secrets, Events: r.events, Target: r.client, Tracker: r.tracker, Watches: r.watches,
		Assessor: assessor, Clock: r.Clock, Metrics: r.metrics, Applied: health.Enqueue,
		AllowHolds: ptr.Deref(r.Config.Controllers.ManagedResource.AllowHolds, r.SameCluster),
	})
	health.Await = reconciler.FirstRunPending
	r.tracker.Subscribe(objects.Subscriber{Drift: reconciler.Triggers.Drift, Health: health.Enqueue})
	return reconciler, health
}

// addAll adds the runnables of the leader: the watches of the target, their audit, the sweep, and the controllers.
func (r *run) addAll(group *kit.Group, reconciler *controller.Reconciler, health *healthcontroller.Reconciler,
	timeout time.Duration) error {
	for _, run := range []func(context.Context) error{r.watches.Start, reconciler.Triggers.Sweep, r.audit(reconciler)} {
		if err := group.Add(leaderOnly{run}); err != nil {
			return err
		}
	}
	if err := reconciler.AddToManager(group, r.source.Cache, timeout); err != nil {
		return err
	}
	return health.AddToManager(group, r.source.Cache, timeout)
}

// expect passes the objects in the inventories to the watches of the target before they start. If that fails, the
// objects are read one by one, which takes longer but has the same result.
func (r *run) expect(ctx context.Context, reconciler *controller.Reconciler, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := reconciler.PreloadInventories(ctx); err != nil {
		r.Log.Info("Objects will be read one by one", "reason", err.Error())
	}
}

// audit returns a runnable that finds changes that the watches of the target have missed.
func (r *run) audit(reconciler *controller.Reconciler) func(context.Context) error {
	period := r.Config.Controllers.ManagedResource.AuditPeriod.Duration
	return func(ctx context.Context) error {
		if period == 0 {
			return nil
		}
		return r.watches.Audit(ctx, period, reconciler.Orphans())
	}
}

// leaderOnly runs a function on the leader only.
type leaderOnly struct{ start func(context.Context) error }

func (l leaderOnly) Start(ctx context.Context) error { return l.start(ctx) }
func (l leaderOnly) NeedLeaderElection() bool        { return true }
