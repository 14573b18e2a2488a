package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/agentview"
	healthcontroller "github.com/espalier-project/espalier/internal/controller/health"
	"github.com/espalier-project/espalier/internal/controller/managedresource"
	"github.com/espalier-project/espalier/internal/health"
	"github.com/espalier-project/espalier/internal/ledger"
	"github.com/espalier-project/espalier/internal/managed"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/source"
	"github.com/espalier-project/espalier/internal/target"
)

// probeBudget is how long the readiness of the cache is waited for in a probe (PRC-54).
const probeBudget = 5 * time.Millisecond

// run wires everything and runs until a signal (PRC-2 … PRC-11).
func run(cfg *config.ResourceManagerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)

	log.Info("Getting rest configs")
	sourceConfig, err := process.RESTConfig(&cfg.SourceClientConnection, "KUBECONFIG")
	if err != nil {
		return fmt.Errorf("source cluster: %w", err)
	}
	targetConfig, err := process.RESTConfig(cfg.TargetClientConnection, "TARGET_KUBECONFIG")
	if err != nil {
		return fmt.Errorf("target cluster: %w", err)
	}

	if targetConfig.QPS > 0 {
		// One limit for all clients of the target; those of the source have one each, so that the lease is always renewed.
		targetConfig.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(targetConfig.QPS, targetConfig.Burst)
	}

	mgr, err := newManager(cfg, sourceConfig, log)
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfigAndClient(protobuf(sourceConfig), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	targetHTTP := mgr.GetHTTPClient()
	if !process.SameCluster(sourceConfig, targetConfig) {
		if targetHTTP, err = rest.HTTPClientFor(targetConfig); err != nil {
			return fmt.Errorf("target cluster: %w", err)
		}
	}
	app, err := newApplication(cfg, mgr, clientset, targetConfig, targetHTTP, log)
	if err != nil {
		return err
	}
	agents, err := serveNodeAgents(cfg, mgr, agentview.Cluster{REST: sourceConfig, HTTP: mgr.GetHTTPClient()}, agentview.Cluster{REST: targetConfig, HTTP: targetHTTP}, log)
	if err != nil {
		return err
	}
	if err := addChecks(mgr, clientset, agents, drain, log); err != nil {
		return err
	}
	if err := mgr.Add(app); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	return nil
}

func newManager(cfg *config.ResourceManagerConfiguration, sourceConfig *rest.Config, log logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcesv1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	// Nobody changes what the cache returns, and ManagedResources with long inventories are large: no copies.
	cacheOptions := cache.Options{DefaultUnsafeDisableDeepCopy: ptr.To(true), DefaultTransform: cache.TransformStripManagedFields(), SyncPeriod: &cfg.SourceClientConnection.CacheResyncPeriod.Duration}
	if namespaces := cfg.SourceClientConnection.Namespaces; len(namespaces) > 0 {
		cacheOptions.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			cacheOptions.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return process.NewManager(process.ManagerOptions{
		REST: sourceConfig, Scheme: scheme, LeaderElection: &cfg.LeaderElection, Webhooks: &cfg.Server.Webhooks,
		HealthProbes: cfg.Server.HealthProbes, Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Cache: cacheOptions, Log: log,
	})
}

// protobuf returns a configuration for built-in kinds, which cost least in that form.
func protobuf(cfg *rest.Config) *rest.Config {
	result := rest.CopyConfig(cfg)
	if result.ContentType == "" {
		result.ContentType = "application/vnd.kubernetes.protobuf"
		result.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	return result
}

func addChecks(mgr manager.Manager, clientset kubernetes.Interface, agents *agentview.View, drain *process.Drain, log logr.Logger) error {
	sourceSynced := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), probeBudget)
		defer cancel()
		return (agents == nil || agents.SourceSynced()) && mgr.GetCache().WaitForCacheSync(ctx)
	}
	// The watches of the target report to the ledger only; whatever they miss is read. None of them is waited for, but those that
	// decide about agents of nodes.
	targetSynced := func() bool { return agents == nil || agents.TargetSynced() }
	apiServer := process.WithGrace(process.APIServerHealthz(clientset.Discovery().RESTClient()), log, clock.RealClock{})
	return process.AddChecks(mgr, drain, process.Check{Name: "apiserver-healthz", Live: apiServer},
		process.SyncCheck("source-informer-sync", sourceSynced, log), process.SyncCheck("target-informer-sync", targetSynced, log))
}

// application is what only the leader runs.
type application struct {
	cfg       *config.ResourceManagerConfiguration
	mgr       manager.Manager
	clientset kubernetes.Interface
	client    *target.Client
	watches   *target.Watches
	ledger    *ledger.Ledger
	log       logr.Logger
}

func newApplication(cfg *config.ResourceManagerConfiguration, mgr manager.Manager, clientset kubernetes.Interface,
	targetConfig *rest.Config, targetHTTP *http.Client, log logr.Logger) (*application, error) {
	client, err := target.NewClient(targetConfig, targetHTTP)
	if err != nil {
		return nil, err
	}
	// The MR cache is needed by the leader only, but its index must be known before it starts.
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &resourcesv1alpha1.ManagedResource{}, managedresource.SecretIndex, managedresource.IndexSecrets); err != nil {
		return nil, fmt.Errorf("adding the index of ManagedResources by Secret: %w", err)
	}
	l := ledger.New()
	watches := target.NewWatches(client, l, target.WatchOptions{
		Namespaces:    cfg.TargetClientConnection.Namespaces,
		LabelSelector: resourcesv1alpha1.LabelManagedBy + "=" + *cfg.Controllers.ManagedResource.ManagedByLabelValue,
		View:          target.View{Health: health.Options{CustomResources: ptr.Deref(cfg.Controllers.Health.CustomResources, false)}},
		Disabled:      ptr.Deref(cfg.TargetClientConnection.DisableCachedClient, false),
		Log:           log.WithName("target"),
	})
	return &application{cfg: cfg, mgr: mgr, clientset: clientset, client: client, watches: watches, ledger: l, log: log}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (a *application) NeedLeaderElection() bool { return true }

// Start determines the identity of the source cluster and adds the controllers (PRC-11).
func (a *application) Start(ctx context.Context) error {
	identity, err := source.ClusterID(ctx, a.clientset.CoreV1(), *a.cfg.Controllers.ClusterID)
	if err != nil {
		return fmt.Errorf("failed during bootstrapping: %w", err)
	}
	a.log.Info("Using cluster id", "clusterID", identity)

	class := managed.NewClass(*a.cfg.Controllers.ResourceClass)
	realClock := clock.RealClock{}
	events := source.NewEvents(a.clientset.CoreV1(), realClock)
	statuses := source.NewStatuses(a.mgr.GetCache(), a.mgr.GetAPIReader(), a.mgr.GetClient(), realClock, events)
	secrets := source.NewSecrets(a.clientset.CoreV1(), a.cfg.SourceClientConnection.Namespaces, realClock, a.log.WithName("secrets"))
	assessor := target.NewAssessor(a.client, a.ledger, a.watches, realClock)
	triggers := &managedresource.Triggers{}

	reconciler := &managedresource.Reconciler{
		Config: a.cfg.Controllers.ManagedResource, Class: class, Identity: identity,
		GarbageCollector: a.cfg.Controllers.GarbageCollector.Enabled,
		Statuses:         statuses, Secrets: secrets, Events: events, Target: a.client, Ledger: a.ledger, Watches: a.watches,
		Assessor: assessor, Clock: realClock,
	}
	judges := []*healthcontroller.Reconciler{
		{Name: healthcontroller.NameHealth, Assess: assessor.Health, Other: assessor.Progressing},
		{Name: healthcontroller.NameProgressing, Assess: assessor.Progressing, Other: assessor.Health},
	}
	news := func(owner ledger.Owner) {
		for _, judge := range judges {
			judge.Enqueue(owner)
		}
	}
	reconciler.Applied = news
	a.ledger.Subscribe(triggers.Drift, news)
	secrets.Subscribe(triggers.SecretChanged, triggers.SecretsMissed)

	for _, runnable := range []manager.Runnable{leaderOnly{secrets.Start}, leaderOnly{a.watches.Start}} {
		if err := a.mgr.Add(runnable); err != nil {
			return err
		}
	}
	if err := secrets.WaitUntilWatching(ctx); err != nil {
		return err
	}
	triggers.Prepare(reconciler, a.mgr.GetClient())
	if err := a.mgr.Add(leaderOnly{triggers.Sweep}); err != nil {
		return err
	}
	timeout := a.cfg.Controllers.CacheSyncTimeout.Duration
	if err := reconciler.AddToManager(a.mgr, timeout, triggers); err != nil {
		return err
	}
	for _, judge := range judges {
		judge.Config, judge.Class, judge.Statuses, judge.Await = a.cfg.Controllers.Health, class, statuses, reconciler.Awaits
		if err := judge.AddToManager(a.mgr, timeout); err != nil {
			return err
		}
	}
	return nil
}

// leaderOnly is a runnable of the leader.
type leaderOnly struct{ start func(context.Context) error }

func (l leaderOnly) Start(ctx context.Context) error { return l.start(ctx) }
func (l leaderOnly) NeedLeaderElection() bool        { return true }
