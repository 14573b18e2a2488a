// Package engine puts the parts that keep ManagedResources together: readers and watches of the source, writers and
// watches of the target, the tracker between them, and the controllers over all of it.
//
// The executable constructs it with real clusters, the simulation with simulated ones: the parts in between are the
// same. It must not know the parts that a process has once, such as ports, signals, election and probes.
package engine

import (
	"context"
	"fmt"
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
	"github.com/espalier-project/espalier/internal/managedresource/controller"
	healthcontroller "github.com/espalier-project/espalier/internal/managedresource/health"
	"github.com/espalier-project/espalier/internal/managedresource/healthcheck"
	"github.com/espalier-project/espalier/internal/managedresource/meta"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/internal/managedresource/source"
	"github.com/espalier-project/espalier/internal/managedresource/target"
	"github.com/espalier-project/espalier/internal/marked"
)

// Options are all that an engine needs; each is required, unless it says otherwise.
type Options struct {
	Config *config.ResourceManagerConfiguration
	// Manager runs the controllers and has the cache of the source, shaped by Scheme and Reads.
	Manager manager.Manager
	// Source is the client of the source for built-in kinds.
	Source kubernetes.Interface
	Target cluster.Connection
	// Marked unmarks what applied objects refer to; nil if the garbage collector is off.
	Marked *marked.Set
	// SameCluster is true if the target is the source.
	SameCluster bool
	// Identified, if it is set, is called on the leader once the identity of the source is known: what else it runs begins
	// then.
	Identified func()
	// Begun, if it is set, is called once the controllers have been added.
	Begun    func()
	Clock    clock.PassiveClock
	Registry prometheus.Registerer
	Log      logr.Logger
}

// Engine applies ManagedResources and judges them. It is a runnable of the leader.
type Engine struct {
	Options
	client  *target.Client
	watches *target.Watches
	tracker *objects.Tracker
	secrets *source.Secrets
	events  *source.Events
	metrics *controller.Metrics
	started start
}

// Scheme returns the kinds that the manager must know.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// New returns an engine. It sends nothing before it is started.
func New(options Options) (*Engine, error) {
	cfg := options.Config
	requests, metrics := target.NewMetrics(options.Registry), controller.NewMetrics(options.Registry)
	client, err := target.NewClient(options.Target.REST, options.Target.HTTP, requests)
	if err != nil {
		return nil, err
	}
	l := objects.New()
	watches := target.NewWatches(client, l, target.WatchOptions{
		Namespaces:    cfg.TargetClientConnection.Namespaces,
		LabelSelector: resourcesv1alpha1.LabelManagedBy + "=" + *cfg.Controllers.ManagedResource.ManagedByLabelValue,
		View:          target.View{Health: healthcheck.Options{CustomResources: ptr.Deref(cfg.Controllers.Health.CustomResources, false)}},
		Disabled:      ptr.Deref(cfg.TargetClientConnection.DisableCachedClient, false),
		Metrics:       requests,
		Log:           options.Log.WithName("target"),
	})
	return &Engine{
		Options: options, client: client, watches: watches, tracker: l, metrics: metrics,
		secrets: source.NewSecrets(options.Source.CoreV1(), cfg.SourceClientConnection.Namespaces,
			options.Log.WithName("secrets")),
		events: source.NewEvents(options.Source.CoreV1(), options.Clock),
	}, nil
}

// TakeLocks takes and releases the locks of the engine, which all runs need (PRC-59).
func (e *Engine) TakeLocks() {
	e.tracker.Get(objects.ID{})
	e.watches.TakeLocks()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (e *Engine) NeedLeaderElection() bool { return true }

// Start runs the engine until the context ends.
func (e *Engine) Start(ctx context.Context) error {
	defer e.events.End() // All senders of Events have ended by then.
	return kit.Run(ctx, e.Manager, e.start)
}

// start determines the identity of the source cluster and adds the controllers (PRC-11).
func (e *Engine) start(group *kit.Group) error {
	ctx, timeout := group.Context(), e.Config.Controllers.CacheSyncTimeout.Duration
	identity, err := e.awaitSource(ctx)
	if err != nil {
		return fmt.Errorf("failed during bootstrapping: %w", err)
	}
	e.Log.Info("Using cluster id", "clusterID", identity)
	if e.Identified != nil {
		e.Identified()
	}
	// The existing objects are asked of the cache before there are controllers.
	informer, err := e.Manager.GetCache().GetInformer(ctx, &resourcesv1alpha1.ManagedResource{},
		cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	class := meta.NewClass(*e.Config.Controllers.ResourceClass)
	if _, err := informer.AddEventHandler(e.metrics.Follow(class)); err != nil {
		return err
	}
	reconciler, health := e.reconcilers(class, identity)
	// ^No change of a Secret is missed from here on, and the watches know their Secrets before they begin.
	e.secrets.Subscribe(reconciler.Triggers.SecretChanged, reconciler.Triggers.SecretsMissed)
	if err := group.Add(leaderOnly{e.secrets.Start}); err != nil {
		return err
	}
	if err := e.secrets.WaitUntilWatching(ctx, timeout); err != nil {
		return err
	}
	e.expect(ctx, reconciler, timeout)
	if err := e.addAll(group, reconciler, health, timeout); err != nil {
		return err
	}
	if e.Begun != nil {
		e.Begun()
	}
	return nil
}

// reconcilers returns the controllers, which hear of objects and Secrets from now on.
func (e *Engine) reconcilers(class meta.Class,
	identity string) (*controller.Reconciler, *healthcontroller.Reconciler) {
	statuses := source.NewStatuses(e.Manager.GetCache(), e.Manager.GetAPIReader(), e.Manager.GetClient(), e.Clock,
		e.events)
	statuses.Readiness = ptr.Deref(e.Config.Controllers.ManagedResource.ReadyCondition, false)
	assessor := target.NewAssessor(e.client, e.tracker, e.watches, e.Clock)
	health := healthcontroller.New(healthcontroller.Options{Config: e.Config.Controllers.Health, Class: class,
		Statuses: statuses, Clock: e.Clock, Assess: assessor.Assess, Confirm: assessor.Confirm})
	reconciler := controller.New(controller.Options{
		Config: e.Config.Controllers.ManagedResource, Class: class, Identity: identity,
		GarbageCollector: e.Config.Controllers.GarbageCollector.Enabled, Marked: e.Marked,
		Statuses: statuses, Secrets: e.secrets, Events: e.events, Target: e.client, Tracker: e.tracker, Watches: e.watches,
		Assessor: assessor, Clock: e.Clock, Metrics: e.metrics, Applied: health.Enqueue,
		AllowHolds: ptr.Deref(e.Config.Controllers.ManagedResource.AllowHolds, e.SameCluster),
	})
	health.Await = reconciler.FirstRunPending
	e.tracker.Subscribe(objects.Subscriber{Drift: reconciler.Triggers.Drift, Verdict: health.Enqueue})
	return reconciler, health
}

// addAll adds what the leader runs: the watches of the target, their audit, the sweep, and the controllers.
func (e *Engine) addAll(group *kit.Group, reconciler *controller.Reconciler, health *healthcontroller.Reconciler,
	timeout time.Duration) error {
	for _, run := range []func(context.Context) error{e.watches.Start, reconciler.Triggers.Sweep, e.audit(reconciler)} {
		if err := group.Add(leaderOnly{run}); err != nil {
			return err
		}
	}
	if err := reconciler.AddToManager(group, timeout); err != nil {
		return err
	}
	return health.AddToManager(group, timeout)
}

// expect gives the watches the existing objects. If that fails, the objects are read one by one, which takes longer
// and has the same result.
func (e *Engine) expect(ctx context.Context, reconciler *controller.Reconciler, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := reconciler.PreloadInventories(ctx); err != nil {
		e.Log.Info("Objects will be read one by one", "reason", err.Error())
	}
}

// audit is the safety net under the watches of the target.
func (e *Engine) audit(reconciler *controller.Reconciler) func(context.Context) error {
	period := e.Config.Controllers.ManagedResource.AuditPeriod.Duration
	return func(ctx context.Context) error {
		if period == 0 {
			return nil
		}
		return e.watches.Audit(ctx, period, reconciler.Orphans())
	}
}

// leaderOnly is a runnable of the leader.
type leaderOnly struct{ start func(context.Context) error }

func (l leaderOnly) Start(ctx context.Context) error { return l.start(ctx) }
func (l leaderOnly) NeedLeaderElection() bool        { return true }
