package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/agentview"
	"github.com/espalier-project/espalier/internal/engine"
	"github.com/espalier-project/espalier/internal/process"
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
	target := engine.Cluster{REST: targetConfig, HTTP: targetHTTP}
	others, err := newClusters(cfg, mgr, target)
	if err != nil {
		return err
	}
	app, err := engine.New(engine.Options{Config: cfg, Manager: mgr, Source: clientset, Target: target, Bootstrapped: others.add, Clock: clock.RealClock{}, Log: log})
	if err != nil {
		return err
	}
	agents, err := serveNodeAgents(cfg, mgr, agentview.Cluster{REST: sourceConfig, HTTP: mgr.GetHTTPClient()}, agentview.Cluster{REST: targetConfig, HTTP: targetHTTP}, log)
	if err != nil {
		return err
	}
	serveWebhooks(cfg, mgr.GetAPIReader(), mgr.GetWebhookServer().Register, metrics.Registry, log)
	if err := addChecks(mgr, clientset, app, agents, drain, log); err != nil {
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
	scheme, err := engine.Scheme()
	if err != nil {
		return nil, err
	}
	return process.NewManager(process.ManagerOptions{
		REST: sourceConfig, Scheme: scheme, LeaderElection: &cfg.LeaderElection, Webhooks: &cfg.Server.Webhooks,
		HealthProbes: cfg.Server.HealthProbes, Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Cache: engine.CacheOptions(cfg), Log: log,
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

func addChecks(mgr manager.Manager, clientset kubernetes.Interface, app *engine.Engine, agents *agentview.View, drain *process.Drain, log logr.Logger) error {
	sourceSynced := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), probeBudget)
		defer cancel()
		return (agents == nil || agents.SourceSynced()) && mgr.GetCache().WaitForCacheSync(ctx)
	}
	// The watches of the target report to the ledger only; whatever they miss is read. None of them is waited for, but those that
	// decide about agents of nodes.
	targetSynced := func() bool { return agents == nil || agents.TargetSynced() }
	apiServer := process.APIServerHealthz(clientset.Discovery().RESTClient())
	return process.AddChecks(mgr, drain,
		process.Check{Name: "apiserver-healthz", Live: process.WithGrace(apiServer, log, clock.RealClock{}), Ready: process.UntilFirst(apiServer)},
		process.Check{Name: "managedresources", Ready: func(*http.Request) error { return app.Ready() }},
		process.SyncCheck("source-informer-sync", sourceSynced, log), process.SyncCheck("target-informer-sync", targetSynced, log))
}
