package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/agentview"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/shoots"
)

// app is the process.
type app struct {
	cfg     *config.NodeAgentAuthorizerConfiguration
	mgr     manager.Manager
	source  agentview.Cluster
	metrics *nodeagent.Metrics
	log     logr.Logger
}

// run wires everything and runs until a signal.
func run(cfg *config.NodeAgentAuthorizerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)
	log.Info("Getting rest configs")
	a := &app{cfg: cfg, metrics: nodeagent.NewMetrics(metrics.Registry), log: log.WithName("webhook." + nodeagent.Name)}
	mgr, err := process.NewManager(process.ManagerOptions{
		// Nothing of the manager talks to a cluster: no election, no cache.
		REST: &rest.Config{}, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Log: log,
	})
	if err != nil {
		return err
	}
	a.mgr = mgr
	if cfg.MachineNamespace != nil || cfg.ShootsDirectory != "" {
		if a.source, err = cluster(&cfg.SourceClientConnection, "KUBECONFIG"); err != nil && cfg.ShootsDirectory == "" {
			return fmt.Errorf("source cluster: %w", err)
		}
	}
	serve := a.serveOne
	if cfg.ShootsDirectory != "" {
		serve = a.serveMany
	}
	source, target, err := serve()
	if err != nil {
		return err
	}
	// NAA-9
	if err := process.AddChecks(mgr, drain, process.SyncCheck("source-informer-sync", source, log), process.SyncCheck("target-informer-sync", target, log)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func cluster(connection *config.ClientConnection, environment string) (agentview.Cluster, error) {
	restConfig, err := process.RESTConfig(connection.Connection(), environment)
	if err != nil {
		return agentview.Cluster{}, err
	}
	client, err := rest.HTTPClientFor(restConfig)
	return agentview.Cluster{REST: restConfig, HTTP: client}, err
}

// serveOne serves the shoot of the configuration; it returns what readiness waits for.
func (a *app) serveOne() (source, target func() bool, err error) {
	shoot, err := cluster(&a.cfg.TargetClientConnection, "TARGET_KUBECONFIG")
	if err != nil {
		return nil, nil, fmt.Errorf("target cluster: %w", err)
	}
	view, reviews, err := a.shoot(&a.cfg.Agents, shoot, a.log)
	if err != nil {
		return nil, nil, err
	}
	a.mgr.GetWebhookServer().Register(nodeagent.Path, reviews)
	return view.SourceSynced, view.TargetSynced, a.mgr.Add(view)
}

// shoot returns the view of a shoot and the endpoint that decides by it.
func (a *app) shoot(agents *config.Agents, target agentview.Cluster, log logr.Logger) (*agentview.View, *process.Reviews, error) {
	mode := agentview.SelectorsNever
	switch agents.AuthorizeWithSelectors {
	case config.SelectorsTrue:
		mode = agentview.SelectorsAlways
	case config.SelectorsAuto:
		mode = agentview.SelectorsAuto
	}
	view, err := agentview.New(agentview.Options{
		Source: a.source, MachineNamespace: ptr.Deref(agents.MachineNamespace, ""), Target: target, Selectors: mode, Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	authorizer := &nodeagent.Authorizer{View: view, ByMachine: view.ByMachine(), AllowWatchAll: agents.Nodes.AllowWatchAll, Metrics: a.metrics, Log: log}
	return view, &process.Reviews{Authorizer: authorizer, Ready: view.Synced, DenyOnError: true, Log: log}, nil
}

// serveMany serves the shoots of a folder, each under a path of its own. Readiness does not wait for shoots: one that cannot be reached
// must not take the others away; its own requests are answered with 503 until it is known.
func (a *app) serveMany() (source, target func() bool, err error) {
	directory := &shoots.Directory{
		Path: a.cfg.ShootsDirectory, Clock: clock.RealClock{}, Log: a.log,
		Serve: func(ctx context.Context, name string, entry *config.ShootEntry) (shoots.Handler, error) {
			target, err := cluster(&entry.TargetClientConnection, "")
			if err != nil {
				return shoots.Handler{}, fmt.Errorf("target cluster: %w", err)
			}
			if entry.MachineNamespace != nil && a.source.REST == nil {
				return shoots.Handler{}, fmt.Errorf("the shoot has Machines, but there is no connection to the source cluster")
			}
			view, reviews, err := a.shoot(&entry.Agents, target, a.log.WithValues("shoot", name))
			if err != nil {
				return shoots.Handler{}, err
			}
			go func() {
				if err := view.Start(ctx); err != nil {
					a.log.Error(err, "Shoot cannot be followed", "shoot", name)
				}
				target.HTTP.CloseIdleConnections()
			}()
			return shoots.Handler{Handler: reviews, Ready: view.Synced}, nil
		},
	}
	a.mgr.GetWebhookServer().Register(nodeagent.Path+"/", directory)
	always := func() bool { return true }
	return always, directory.Read, a.mgr.Add(directory)
}
