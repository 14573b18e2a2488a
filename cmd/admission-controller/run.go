package main

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/authorizer/seed"
	"github.com/espalier-project/espalier/internal/garden"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/graphpage"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/relation"
	"github.com/espalier-project/espalier/internal/restriction"
)

// run wires everything and runs until a signal.
func run(cfg *config.AdmissionControllerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)

	log.Info("Getting rest config")
	restConfig, err := process.RESTConfig(cfg.GardenClientConnection.Connection(), "KUBECONFIG")
	if err != nil {
		return fmt.Errorf("garden cluster: %w", err)
	}
	mgr, err := process.NewManager(process.ManagerOptions{
		REST: restConfig, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Log: log,
	})
	if err != nil {
		return err
	}
	client, err := garden.NewClient(restConfig, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("garden cluster: %w", err)
	}

	realClock := clock.RealClock{}
	g := graph.New(relation.Schema)
	graphMetrics := garden.NewMetrics(metrics.Registry, g, seed.Buckets())
	state := relation.NewState(g, realClock, graphMetrics.Updated)
	watches := garden.NewWatches(client, state, realClock, graphMetrics.Lag, log.WithName("seed-authorizer-graph"))
	if err := mgr.Add(watches); err != nil {
		return err
	}
	authorizer := &seed.Authorizer{
		Graph: g, Facts: state.Facts(), Live: client, Selectors: &garden.Selectors{Client: client, Clock: realClock}, Metrics: seed.NewMetrics(metrics.Registry),
		ReadAll:    cfg.Server.SeedAuthorizer.ReadScope == config.ReadScopeAll,
		WriteOwned: cfg.Server.SeedAuthorizer.WriteScope == config.WriteScopeOwned,
		Log:        log.WithName("webhook." + seed.Name),
	}
	server := mgr.GetWebhookServer()
	server.Register(seed.Path, &process.Reviews{Authorizer: authorizer, Ready: watches.Synced, Log: log.WithName("webhook." + seed.Name)})
	server.Register(restriction.Path, &webhook.Admission{Handler: &restriction.Handler{
		Reader: client, Clock: realClock, Log: log.WithName("webhook." + restriction.Name),
	}})
	if ptr.Deref(cfg.Server.EnableDebugHandlers, false) {
		log.Info("Serving the debug page of the graph without authentication", "path", graphpage.Path)
		server.Register(graphpage.Path, &graphpage.Handler{Graph: g, Authorizer: authorizer, Log: log})
	}
	if err := addChecks(mgr, watches, drain, log); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// addChecks adds PRC-57 and PRC-58.
func addChecks(mgr manager.Manager, watches *garden.Watches, drain *process.Drain, log logr.Logger) error {
	synced := process.Synced(watches.Synced)
	for _, c := range []struct {
		add   func(string, healthz.Checker) error
		name  string
		check healthz.Checker
	}{
		{mgr.AddHealthzCheck, "ping", healthz.Ping},
		{mgr.AddHealthzCheck, "informer-sync", process.WithGrace(synced, log, clock.RealClock{})},
		{mgr.AddReadyzCheck, "informer-sync", synced},
		{mgr.AddReadyzCheck, "webhook-server", mgr.GetWebhookServer().StartedChecker()},
		{mgr.AddReadyzCheck, "shutdown", drain.Check},
	} {
		if err := c.add(c.name, c.check); err != nil {
			return err
		}
	}
	return nil
}
