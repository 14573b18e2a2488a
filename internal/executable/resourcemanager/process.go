package resourcemanager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/internal/marked"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
	"github.com/espalier-project/espalier/internal/process"
)

// Process has the state that features share.
type Process struct {
	Config  *configuration
	Manager manager.Manager
	// Source and Target have the caches for the reads of the enabled features.
	Source, Target *cluster.Cluster
	// Clientset is the client for built-in kinds of the source.
	Clientset kubernetes.Interface
	Clock     clock.WithTicker
	Registry  prometheus.Registerer
	Log       logr.Logger

	// Engine applies ManagedResources.
	Engine *engine.Engine
	// Marked has the objects that the garbage collector has marked; nil if the collector is off.
	Marked *marked.Set
	// agents is the view of the node-agent authorizer; nil if the authorizer is off.
	agents *view.View
	// bodies bounds the memory of requests, and hooks has the metrics. All webhooks share them.
	bodies *endpoint.Bodies
	hooks  *admission.Metrics
	// kept has the caches of each enabled feature, by the feature's key.
	kept map[string]*cluster.Kept
	// identified is closed once the leader has the identity of the source, begun once the engine's controllers have
	// been added.
	identified, begun chan struct{}
}

// connections has the functions that return the clients' configurations for both clusters.
type connections struct {
	source, target func(*shared.ClientConnection) (*rest.Config, error)
}

// New returns the process with all enabled features, ready to run. It sends no requests.
func New(cfg *configuration, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	return assemble(cfg, feature.Enabled(Table(), cfg), connections{process.RESTConfig, process.RESTConfig}, registry, log)
}

func assemble(cfg *configuration, rows []Row, reached connections, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	log.Info("Getting rest configs")
	sourceConfig, err := reached.source(&cfg.SourceClientConnection)
	if err != nil {
		return nil, fmt.Errorf("source cluster: %w", err)
	}
	targetConfig, err := reached.target(cfg.TargetClientConnection)
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	if targetConfig.QPS > 0 {
		// All clients of the target share one rate limit. Clients of the source have one each, so that the Lease is
		// always renewed.
		targetConfig.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(targetConfig.QPS, targetConfig.Burst)
	}
	p, err := ofSource(cfg, rows, sourceConfig, registry, log)
	if err != nil {
		return nil, err
	}
	p.bodies, p.hooks = admission.NewBodies(), admission.NewMetrics(registry)
	scheme, err := targetScheme()
	if err != nil {
		return nil, err
	}
	target := cluster.Connection{REST: targetConfig, HTTP: p.Manager.GetHTTPClient()}
	if !process.SameCluster(sourceConfig, targetConfig) {
		if target, err = cluster.Connect(targetConfig); err != nil {
			return nil, fmt.Errorf("target cluster: %w", err)
		}
	}
	if p.Target, err = target.Caching(feature.Target, cluster.Options{
		Scheme: scheme, Reads: feature.AllReads(rows, cfg), Namespaces: cfg.TargetClientConnection.Namespaces, Resync: &cfg.TargetClientConnection.CacheResyncPeriod.Duration,
	}); err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	if cfg.Controllers.GarbageCollector.Enabled {
		p.Marked = NewMarked(p)
	}
	if p.Engine, err = engine.New(engine.Options{
		Config: cfg, Manager: p.Manager, Source: p.Clientset, Connection: p.Source.Connection, Target: target, Marked: p.Marked, SameCluster: process.SameCluster(sourceConfig, targetConfig), Identified: func() { close(p.identified) }, Begun: func() { close(p.begun) }, Clock: p.Clock, Registry: p.Registry, Log: log,
	}); err != nil {
		return nil, err
	}
	return p, p.add(rows)
}

// ofSource returns a process with a connection to its source, and without features.
func ofSource(cfg *configuration, rows []Row, sourceConfig *rest.Config, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	guarded, err := process.Guard(cfg.Debugging, sourceConfig, log)
	if err != nil {
		return nil, err
	}
	mgr, err := newManager(cfg, rows, sourceConfig, guarded, log)
	if err != nil {
		return nil, err
	}
	source, err := cluster.Managed(mgr, sourceConfig)
	if err != nil {
		return nil, fmt.Errorf("source cluster: %w", err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(cluster.Protobuf(sourceConfig), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	return &Process{
		Config: cfg, Manager: mgr, Clock: clock.RealClock{}, Registry: registry, Log: log, Source: source, Clientset: clientset,
		kept: map[string]*cluster.Kept{}, identified: make(chan struct{}), begun: make(chan struct{}),
	}, nil
}

func newManager(cfg *configuration, rows []Row, sourceConfig *rest.Config, guarded *guard.Guard, log logr.Logger) (manager.Manager, error) {
	scheme, err := engine.Scheme()
	if err != nil {
		return nil, err
	}
	reads := feature.AllReads(rows, cfg)
	// The manager's cache is the source's.
	kept, err := cluster.CacheOptions(feature.Source, cluster.Options{
		Scheme: scheme, Reads: reads, Namespaces: cfg.SourceClientConnection.Namespaces, Resync: &cfg.SourceClientConnection.CacheResyncPeriod.Duration,
	})
	if err != nil {
		return nil, err
	}
	return process.NewManager(process.ManagerOptions{
		Guard: guarded, REST: sourceConfig, Scheme: scheme, LeaderElection: &cfg.LeaderElection, Webhooks: &cfg.Server.Webhooks,
		HealthProbes: cfg.Server.HealthProbes, Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Cache: kept, Mapper: cluster.Mapper(feature.Source, reads), Log: log,
	})
}

// targetScheme has all built-in kinds.
func targetScheme() (*runtime.Scheme, error) {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add adds the enabled features to the manager: those of every replica start at once, the others with the leader.
func (p *Process) add(rows []Row) error {
	byName := map[feature.Cluster]*cluster.Cluster{feature.Source: p.Source, feature.Target: p.Target}
	// The cache of the target keeps only kinds with readers, so it costs nothing if there are none.
	if err := p.Manager.Add(p.Target); err != nil {
		return err
	}
	var leaders []Row
	for _, row := range rows {
		kept, err := cluster.Keep(byName, row.ReadsOf(p.Config), p.Clock, p.Log.WithName(row.Name))
		if err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
		p.kept[row.Key()] = kept
		if row.Runs == feature.Leader {
			leaders = append(leaders, row)
			continue
		}
		if err := p.Manager.Add(kept); err != nil {
			return err
		}
		if err := row.Start(context.Background(), p); err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
	}
	return p.Manager.Add(leading{p, leaders})
}

// SourceAwaited returns the names of the source's kinds that are not synced yet.
func (p *Process) SourceAwaited(budget time.Duration) []string {
	var awaited []string
	if p.agents != nil {
		awaited = p.agents.SourceAwaited()
	}
	return append(awaited, p.awaited(feature.Source, p.Source, budget)...)
}

// TargetAwaited returns the names of the target's kinds that are not synced yet. The engine's watches are left out:
// objects that they lack are read live, so the start does not wait for them.
func (p *Process) TargetAwaited(budget time.Duration) []string {
	var awaited []string
	if p.agents != nil {
		awaited = p.agents.TargetAwaited()
	}
	return append(awaited, p.awaited(feature.Target, p.Target, budget)...)
}

// awaited returns the names of a cluster's kinds that are not synced yet.
func (p *Process) awaited(name feature.Cluster, c *cluster.Cluster, budget time.Duration) []string {
	if c.Synced(budget) {
		return nil
	}
	awaited := []string{"the cache of the " + string(name) + " cluster"}
	for _, kept := range p.kept {
		awaited = append(awaited, kept.Awaited(name)...)
	}
	return awaited
}

// Namespaces returns the namespaces to which the process is restricted, by cluster; none means all.
func Namespaces(cfg *configuration) map[feature.Cluster][]string {
	return map[feature.Cluster][]string{feature.Source: cfg.SourceClientConnection.Namespaces, feature.Target: cfg.TargetClientConnection.Namespaces}
}
