package admissioncontroller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	authorizer "github.com/espalier-project/espalier/internal/authorizer/garden"
	"github.com/espalier-project/espalier/internal/clusters"
	"github.com/espalier-project/espalier/internal/feature"
	foreign "github.com/espalier-project/espalier/internal/foreign/garden"
	"github.com/espalier-project/espalier/internal/garden"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/limit"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/relation"
	"github.com/espalier-project/espalier/internal/restriction"
	"github.com/espalier-project/espalier/internal/selectors"
	"github.com/espalier-project/espalier/internal/serve"
	"github.com/espalier-project/espalier/internal/serve/admit"
	"github.com/espalier-project/espalier/internal/serve/review"
)

// Process is what features start in.
type Process struct {
	Config  *configuration
	Manager manager.Manager
	// Garden is what webhooks read; its cache begins with the first request that needs it.
	Garden   *clusters.Cluster
	Clock    clock.WithTicker
	Registry prometheus.Registerer
	Log      logr.Logger

	// watches keep the graphs; seeds and shoots decide by them.
	watches       *garden.Watches
	seeds, shoots *authorizer.Authorizer
	// restriction is what both restrictions have in common.
	restriction restriction.Handler
	// reviews, judged and bodies bound what is in memory at once: of authorizers, of restrictions and of all other webhooks.
	reviews, judged, bodies *serve.Bodies
	hooks                   *admit.Metrics
	rejections              *admit.Rejections
	// kept is what each enabled feature reads from the cache, by its key, and first has it begin.
	kept  map[string]*clusters.Kept
	first *asked
}

// What one user may have read, so that it cannot use up what others need: a gardenlet looks up a few new objects when it creates a
// Shoot, and creates some tens of objects, each judged with three reads at most. Users come from certificates and ServiceAccounts, so
// that more of them than are kept means that seeds were deleted.
var (
	liveBudget        = limit.Options{PerSecond: 10, Burst: 20, Clients: 10_000, Clock: clock.RealClock{}}
	restrictionBudget = limit.Options{PerSecond: 20, Burst: 100, Clients: 10_000, Clock: clock.RealClock{}}
)

// What all users of a seed may have read together: its gardenlet makes as many as it likes, by ServiceAccounts in the seed's namespace. It is
// half of what the connection allows by default, so that one seed leaves the others enough, and as much as five users have.
var (
	liveTogether        = limit.Options{PerSecond: 50, Burst: 100, Clients: 10_000, Clock: clock.RealClock{}}
	restrictionTogether = limit.Options{PerSecond: 50, Burst: 150, Clients: 10_000, Clock: clock.RealClock{}}
)

// New returns the process with everything that is enabled, ready to run. It sends nothing.
func New(cfg *configuration, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	log.Info("Getting rest config")
	restConfig, err := process.RESTConfig(cfg.GardenClientConnection.Connection())
	if err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	mgr, err := process.NewManager(process.ManagerOptions{
		REST: restConfig, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p := &Process{
		Config: cfg, Manager: mgr, Clock: clock.RealClock{}, Registry: registry, Log: log,
		reviews: review.NewBodies(), judged: admit.NewBodies(), bodies: admit.NewBodies(),
		hooks: admit.NewMetrics(registry), rejections: admit.NewRejections(registry), kept: map[string]*clusters.Kept{}, first: &asked{clock: clock.RealClock{}},
	}
	rows := feature.Enabled(Table(), cfg)
	if err := p.follow(restConfig); err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	if err := p.cache(rows, restConfig); err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	if err := mgr.Add(collector{p.Clock}); err != nil {
		return nil, err
	}
	return p, p.add(rows)
}

// follow makes the graphs, what keeps them, and who decides by them. The watches, the look-ups of authorizers and those of restrictions have
// a rate limit each: whoever makes one of them slow does not hold up the others.
func (p *Process) follow(restConfig *rest.Config) error {
	var watching, live, restricting *garden.Client
	for _, client := range []**garden.Client{&watching, &live, &restricting} {
		var err error
		if *client, err = garden.NewClient(restConfig, p.Manager.GetHTTPClient()); err != nil {
			return err
		}
	}
	seedGraph, shootGraph := graph.New(relation.Schema), graph.New(relation.SelfHostedSchema)
	metrics := garden.NewMetrics(p.Registry, seedGraph, authorizer.Buckets())
	seedState := relation.NewState(seedGraph, p.Clock, metrics.Updated)
	shootState := relation.NewState(shootGraph, p.Clock, metrics.Updated)
	p.watches = garden.NewWatches(watching, []garden.Graph{{State: seedState, Table: relation.Watches}, {State: shootState, Table: relation.SelfHosted}},
		p.Clock, metrics, p.Log.WithName("seed-authorizer-graph"))
	options := authorizer.Options{
		Graph: seedGraph, Watches: relation.Watches, Facts: seedState.Facts(), Live: live, Budgets: limit.New(liveBudget), Together: limit.New(liveTogether),
		Selectors: &selectors.Checker{Client: watching.Bare(), Clock: p.Clock}, Metrics: authorizer.NewMetrics(p.Registry),
		ReadAll:    p.Config.Server.SeedAuthorizer.ReadScope == config.ReadScopeAll,
		WriteOwned: p.Config.Server.SeedAuthorizer.WriteScope == config.WriteScopeOwned,
		Log:        p.Log.WithName("webhook." + authorizer.SeedName),
	}
	p.seeds = authorizer.NewSeedAuthorizer(options)
	options.Graph, options.Watches, options.Facts = shootGraph, relation.SelfHosted, shootState.Facts()
	options.WriteOwned = false
	options.Log = p.Log.WithName("webhook." + authorizer.ShootName)
	p.shoots = authorizer.NewShootAuthorizer(options, p.seeds)
	p.restriction = restriction.Handler{
		Reader: restricting, Graph: seedGraph, Budgets: limit.New(restrictionBudget), Together: limit.New(restrictionTogether), Clock: p.Clock,
		Checked: p.Config.Server.SeedAuthorizer.References == config.ReferencesChecked,
	}
	return nil
}

// cache has what webhooks keep of the garden, from the first request for one of them on that needs it, and after the graph is complete. The
// readiness of the process does not wait for it: authorizers need none of it, and it is as much as they need.
func (p *Process) cache(rows []Row, restConfig *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, foreign.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	connection := clusters.Connection{REST: restConfig, HTTP: p.Manager.GetHTTPClient()}
	var err error
	if p.Garden, err = connection.Caching(feature.Garden, clusters.Options{Scheme: scheme, Reads: feature.AllReads(rows, p.Config)}); err != nil {
		return err
	}
	return p.Manager.Add(later{p.Garden, func() bool { return p.first.Asked() && p.watches.Synced() }, p.Clock})
}

// add starts what is enabled.
func (p *Process) add(rows []Row) error {
	byName := map[feature.Cluster]*clusters.Cluster{feature.Garden: p.Garden}
	for _, row := range rows {
		kept, err := clusters.Keep(byName, row.ReadsOf(p.Config), p.Clock, p.Log.WithName(row.Name))
		if err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
		p.kept[row.Key()] = kept
		if err := p.Manager.Add(kept); err != nil {
			return err
		}
		if err := row.Start(context.Background(), p); err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
	}
	return nil
}

// Synced says whether the graphs are complete (PRC-57, PRC-58).
func (p *Process) Synced() bool { return p.watches.Synced() }

// Contact says whether every watch was heard of within the configured time.
func (p *Process) Contact() error {
	return p.watches.Contact(p.Config.Server.SeedAuthorizer.MaxStaleness.Duration)
}
