package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/agentview"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/clusters"
	"github.com/espalier-project/espalier/internal/features/agents"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/review"
	"github.com/espalier-project/espalier/internal/shoots"
)

// app is the process.
type app struct {
	cfg     *config.NodeAgentAuthorizerConfiguration
	mgr     manager.Manager
	source  clusters.Connection
	metrics *nodeagent.Metrics
	views   *agentview.Metrics
	// bodies are of all shoots together.
	bodies *serve.Bodies
	log    logr.Logger
}

// run wires everything and runs until a signal.
func run(cfg *config.NodeAgentAuthorizerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)
	log.Info("Getting rest configs")
	a := &app{cfg: cfg, metrics: nodeagent.NewMetrics(metrics.Registry), views: agentview.NewMetrics(metrics.Registry), bodies: review.NewBodies(), log: log.WithName("webhook." + nodeagent.Name)}
	mgr, err := process.NewManager(process.ManagerOptions{
		// Nothing of the manager talks to a cluster: no election, no cache.
		REST: &rest.Config{}, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Log: log,
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
	start := a.serveOne
	if cfg.ShootsDirectory != "" {
		start = a.serveMany
	}
	checks, err := start()
	if err != nil {
		return err
	}
	if err := process.AddChecks(mgr, drain, checks...); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func cluster(connection *config.ClientConnection, environment string) (clusters.Connection, error) {
	restConfig, err := process.RESTConfig(connection.Connection(), environment)
	if err != nil {
		return clusters.Connection{}, err
	}
	return clusters.Connect(restConfig)
}

// serveOne serves the shoot of the configuration; it returns what readiness waits for (NAA-9).
func (a *app) serveOne() ([]process.Check, error) {
	shoot, err := cluster(&a.cfg.TargetClientConnection, "TARGET_KUBECONFIG")
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	served, err := a.shoot("", &a.cfg.Agents, shoot, a.log)
	if err != nil {
		return nil, err
	}
	view := served.View
	a.mgr.GetWebhookServer().Register(nodeagent.Path, served.Reviews)
	return []process.Check{
		process.SyncCheck("source-informer-sync", view.SourceSynced, a.log), process.SyncCheck("target-informer-sync", view.TargetSynced, a.log),
		process.ContactCheck(view.Silences, a.cfg.MaxStaleness.Duration),
	}, a.mgr.Add(view)
}

// shoot returns what is known of a shoot and the endpoint that decides by it.
func (a *app) shoot(name string, c *config.Agents, target clusters.Connection, log logr.Logger) (*agents.Shoot, error) {
	mode := agentview.SelectorsNever
	switch c.AuthorizeWithSelectors {
	case config.SelectorsTrue:
		mode = agentview.SelectorsAlways
	case config.SelectorsAuto:
		mode = agentview.SelectorsAuto
	}
	return agents.New(agents.Options{
		View: agentview.Options{
			Source: a.source, MachineNamespace: ptr.Deref(c.MachineNamespace, ""), Target: target, Selectors: mode,
			Shoot: name, Metrics: a.views, Clock: clock.RealClock{}, Log: log,
		},
		AllowWatchAll: c.Nodes.AllowWatchAll, Metrics: a.metrics, Bodies: a.bodies,
	})
}

// serveMany serves the shoots of a folder, each under a path of its own. Readiness does not wait for shoots: one that cannot be reached
// must not take the others away; its own requests are answered with 503 until it is known.
func (a *app) serveMany() ([]process.Check, error) {
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
			served, err := a.shoot(name, &entry.Agents, target, a.log.WithValues("shoot", name))
			if err != nil {
				return shoots.Handler{}, err
			}
			go func() {
				if err := served.View.Start(ctx); err != nil {
					a.log.Error(err, "Shoot cannot be followed", "shoot", name)
				}
				target.HTTP.CloseIdleConnections()
			}()
			return shoots.Handler{Handler: served.Reviews, Ready: served.View.Synced}, nil
		},
		Absent: a.absent,
	}
	a.mgr.GetWebhookServer().Register(nodeagent.Path+"/", directory)
	always := func() bool { return true }
	return []process.Check{
		process.SyncCheck("source-informer-sync", always, a.log), process.SyncCheck("target-informer-sync", directory.Read, a.log),
	}, a.mgr.Add(directory)
}

// absent answers for a shoot that has no entry: agents are denied, and about others there is no opinion.
func (a *app) absent(name string) http.Handler {
	return review.New(review.Options{Authorizer: noShoot(name), Concerns: nodeagent.IsAgent, DenyOnError: true, Bodies: a.bodies, Log: a.log})
}

type noShoot string

// Authorize implements authorizer.UnconditionalAuthorizer.
func (n noShoot) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", serve.WithStatus(http.StatusNotFound, fmt.Errorf("no shoot %q is served", string(n)))
}
