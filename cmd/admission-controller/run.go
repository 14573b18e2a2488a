package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	authorizer "github.com/espalier-project/espalier/internal/authorizer/garden"
	"github.com/espalier-project/espalier/internal/garden"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/graphpage"
	"github.com/espalier-project/espalier/internal/limit"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/relation"
	"github.com/espalier-project/espalier/internal/restriction"
	"github.com/espalier-project/espalier/internal/selectors"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/serve/review"
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
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Log: log,
	})
	if err != nil {
		return err
	}
	// Each has its own rate limit: whoever makes one of them slow does not hold up the others.
	var clients clients
	for _, client := range []**garden.Client{&clients.watches, &clients.live, &clients.restriction} {
		if *client, err = garden.NewClient(restConfig, mgr.GetHTTPClient()); err != nil {
			return fmt.Errorf("garden cluster: %w", err)
		}
	}

	if err := mgr.Add(collector{clock.RealClock{}}); err != nil {
		return err
	}
	synced, err := decide(cfg, mgr, clients, drain, log)
	if err != nil {
		return err
	}
	if err := serveWebhooks(cfg, mgr, restConfig, synced, log); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// clients of the garden: for the watches, for what an authorizer looks up, and for what a restriction does.
type clients struct{ watches, live, restriction *garden.Client }

// What one user may have read, so that it cannot use up what others need: a gardenlet looks up a few new objects when it creates a
// Shoot, and creates some tens of objects, each judged with three reads at most. Users come from certificates and ServiceAccounts, so
// that more of them than are kept means that seeds were deleted.
var (
	liveBudget        = limit.Options{PerSecond: 10, Burst: 20, Clients: 10_000, Clock: clock.RealClock{}}
	restrictionBudget = limit.Options{PerSecond: 20, Burst: 100, Clients: 10_000, Clock: clock.RealClock{}}
)

// decide builds graphs, authorizers and restrictions, and serves them. It returns what says whether the graphs are complete.
func decide(cfg *config.AdmissionControllerConfiguration, mgr manager.Manager, client clients, drain *process.Drain, log logr.Logger) (synced func() bool, err error) {
	realClock := clock.RealClock{}
	seedGraph, shootGraph := graph.New(relation.Schema), graph.New(relation.SelfHostedSchema)
	graphMetrics := garden.NewMetrics(metrics.Registry, seedGraph, authorizer.Buckets())
	seedState := relation.NewState(seedGraph, realClock, graphMetrics.Updated)
	shootState := relation.NewState(shootGraph, realClock, graphMetrics.Updated)
	watches := garden.NewWatches(client.watches, []garden.Graph{{State: seedState, Table: relation.Watches}, {State: shootState, Table: relation.SelfHosted}},
		realClock, graphMetrics, log.WithName("seed-authorizer-graph"))
	if err := mgr.Add(watches); err != nil {
		return nil, err
	}
	options := authorizer.Options{
		Graph: seedGraph, Watches: relation.Watches, Facts: seedState.Facts(), Live: client.live, Budgets: limit.New(liveBudget),
		Selectors: &selectors.Checker{Client: client.watches.Bare(), Clock: realClock}, Metrics: authorizer.NewMetrics(metrics.Registry),
		ReadAll:    cfg.Server.SeedAuthorizer.ReadScope == config.ReadScopeAll,
		WriteOwned: cfg.Server.SeedAuthorizer.WriteScope == config.WriteScopeOwned,
		Log:        log.WithName("webhook." + authorizer.SeedName),
	}
	seeds := authorizer.NewSeedAuthorizer(options)
	options.Graph, options.Watches, options.Facts = shootGraph, relation.SelfHosted, shootState.Facts()
	options.WriteOwned = false
	options.Log = log.WithName("webhook." + authorizer.ShootName)
	shoots := authorizer.NewShootAuthorizer(options, seeds)

	server := mgr.GetWebhookServer()
	restrict := restriction.Handler{
		Reader: client.restriction, Graph: seedGraph, Budgets: limit.New(restrictionBudget), Clock: realClock,
		Checked: cfg.Server.SeedAuthorizer.References == config.ReferencesChecked,
	}
	ofSeeds, ofShoots := restrict, restrict
	ofSeeds.Log, ofShoots.Log = log.WithName("webhook."+restriction.SeedName), log.WithName("webhook."+restriction.ShootName)
	bodies := review.NewBodies()
	server.Register(authorizer.SeedPath, review.New(review.Options{Authorizer: seeds, Ready: watches.Synced, Bodies: bodies, Log: log.WithName("webhook." + authorizer.SeedName)}))
	server.Register(authorizer.ShootPath, review.New(review.Options{Authorizer: shoots, Ready: watches.Synced, Bodies: bodies, Log: log.WithName("webhook." + authorizer.ShootName)}))
	admissions := admit.Options{Ready: watches.Synced, Bodies: serve.NewBodies(admit.CostlyAtOnce), Metrics: admit.NewMetrics(metrics.Registry)}
	server.Register(restriction.SeedPath, restrictionEndpoint(admissions, restriction.SeedName, ofSeeds.Decide, ofSeeds.Log))
	server.Register(restriction.ShootPath, restrictionEndpoint(admissions, restriction.ShootName, restriction.SelfHosted{Handler: &ofShoots}.Decide, ofShoots.Log))
	if ptr.Deref(cfg.Server.EnableDebugHandlers, false) {
		for path, a := range map[string]*authorizer.Authorizer{graphpage.SeedPath: seeds, graphpage.ShootPath: shoots} {
			log.Info("Serving the debug page of a graph without authentication", "path", path)
			server.Register(path, &graphpage.Handler{Path: path, Graph: a.Graph, Authorizer: a, Log: log})
		}
	}
	longest := cfg.Server.SeedAuthorizer.MaxStaleness.Duration
	return watches.Synced, process.AddChecks(mgr, drain, process.SyncCheck("informer-sync", watches.Synced, log), // Not ready before the graph is complete, not alive if it stays so (PRC-57, PRC-58).
		process.Check{Name: "watch-contact", Ready: func(*http.Request) error { return watches.Contact(longest) }})
}

// restrictionEndpoint is the endpoint of a restriction, with what both of them share. Restrictions ask the graph, too: while it is not
// complete they would refuse what it does not have yet, and a 403 is final for whoever gets it.
func restrictionEndpoint(shared admit.Options, name string, decide func(context.Context, *admissionv1.AdmissionRequest) error, log logr.Logger) http.Handler {
	shared.Name, shared.Decide, shared.Log = name, admit.Decide(decide), log
	return admit.New(shared)
}
