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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/cluster/readthrough"
	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/internal/seedauthorizer/debug"
	"github.com/espalier-project/espalier/internal/seedauthorizer/garden"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/seedauthorizer/restriction"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
	"github.com/espalier-project/espalier/internal/selectors"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
)

// Process has the state that features share.
type Process struct {
	Config   *configuration
	Manager  manager.Manager
	Clock    clock.WithTicker
	Registry prometheus.Registerer
	Log      logr.Logger

	// watches update the graphs; seeds and shoots are the authorizers that use them.
	watches       *garden.Watches
	seeds, shoots *rules.Authorizer
	// seedRestriction and shootRestriction read over the connections of the authorizers.
	seedRestriction, shootRestriction restriction.Handler
	// users finds the Shoots and bindings that refer to an object, for the other webhooks; live is the client for
	// their other reads.
	users *referrers.Index
	live  client.Reader
	// reviews, judged and bodies bound the memory of requests: of authorizers, of restrictions and of all other
	// webhooks.
	reviews, judged, bodies *endpoint.Bodies
	hooks                   *admission.Metrics
	// pages bounds the debug pages of both graphs.
	pages *debug.Pages
	// guard checks the readers of the debug pages; nil means that everyone may read them.
	guard      *guard.Guard
	rejections *admission.Rejections
	// differences counts the requests that the shadow policy decides differently.
	differences *authorization.Differences
}

// New returns the process with all enabled features, ready to run. It sends no requests.
func New(cfg *configuration, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	return assemble(cfg, feature.Enabled(Table(), cfg), process.RESTConfig, registry, log)
}

// assemble returns the process with the given rows; reached returns the configuration of its cluster's client.
func assemble(
	cfg *configuration, rows []Row, reached func(*shared.ClientConnection) (*rest.Config, error), registry prometheus.Registerer, log logr.Logger,
) (*Process, error) {
	log.Info("Getting rest config")
	restConfig, err := reached(cfg.GardenClientConnection.Connection())
	if err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	guarded, err := process.Guard(cfg.Debugging, restConfig, log)
	if err != nil {
		return nil, err
	}
	mgr, err := process.NewManager(process.ManagerOptions{
		Guard: guarded, REST: restConfig, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p := &Process{
		Config: cfg, Manager: mgr, Clock: clock.RealClock{}, Registry: registry, Log: log,
		reviews: authorization.NewBodies(), judged: admission.NewBodies(), bodies: admission.NewBodies(), pages: debug.NewPages(), guard: guarded,
		hooks: admission.NewMetrics(registry), rejections: admission.NewRejections(registry), users: &referrers.Index{},
	}
	p.differences = authorization.NewDifferences(registry, p.Clock)
	registerDoubles(registry)
	if err := p.follow(restConfig); err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	if err := p.reads(rows, restConfig); err != nil {
		return nil, fmt.Errorf("garden cluster: %w", err)
	}
	if err := mgr.Add(collector{p.Clock}); err != nil {
		return nil, err
	}
	return p, p.add(rows)
}

// lookups are the live reads of the garden for clients: over their own connection, with as many concurrent requests
// as it allows. Waiting clients take turns (ratelimit.Queue). Clients of seeds, clients of self-hosted shoots, which
// members of a project can invent, and clients of the other webhooks have a connection each, and so have the watches:
// no kind of client waits for another.
type lookups struct {
	*garden.Client
	queue *ratelimit.Queue
}

func newLookups(connection cluster.Connection) (lookups, error) {
	own, err := connection.Own()
	if err != nil {
		return lookups{}, err
	}
	client, err := garden.NewClient(own.REST, own.HTTP)
	return lookups{client, ratelimit.NewQueue(cluster.Streams, ratelimit.Waiting)}, err
}

// follow creates the graphs, their watches, and the authorizers that use them.
func (p *Process) follow(restConfig *rest.Config) error {
	connection := cluster.Connection{REST: restConfig, HTTP: p.Manager.GetHTTPClient()}
	watching, err := garden.NewClient(connection.REST, connection.HTTP)
	if err != nil {
		return err
	}
	ofSeeds, err := newLookups(connection)
	if err != nil {
		return err
	}
	ofShoots, err := newLookups(connection)
	if err != nil {
		return err
	}
	seedGraph, shootGraph := graph.New(relation.Schema), graph.New(relation.SelfHostedSchema)
	metrics := garden.NewMetrics(p.Registry, seedGraph, rules.Buckets())
	seedState := relation.NewState(seedGraph, p.Clock, metrics.Updated)
	shootState := relation.NewState(shootGraph, p.Clock, metrics.Updated)
	// The graph for shoots is first: a Shoot that only the graph for seeds has counts as an ordinary one (SHI-3).
	p.watches = garden.NewWatches(watching, []garden.Graph{{State: shootState, Table: relation.SelfHosted}, {State: seedState, Table: relation.Watches}},
		p.users, p.Clock, metrics, p.Log.WithName("seed-authorizer-graph"))
	options := rules.Options{
		Graph: seedGraph, Watches: relation.Watches, Facts: seedState.Facts(), Live: ofSeeds, Queue: ofSeeds.queue,
		Selectors: &selectors.Checker{Client: watching.Bare(), Clock: p.Clock}, Metrics: rules.NewMetrics(p.Registry),
		ReadAll: policyOf(p.Config).ReadAll, WriteOwned: policyOf(p.Config).WriteOwned,
		Shadow: shadowOf(p.Config), Differences: p.differences,
		Log: p.Log.WithName("webhook." + rules.SeedName),
	}
	p.seeds = rules.NewSeedAuthorizer(options)
	options.Graph, options.Watches, options.Facts = shootGraph, relation.SelfHosted, shootState.Facts()
	options.Live, options.Queue = ofShoots, ofShoots.queue
	options.WriteOwned = false
	options.Shadow = shadowOfShoots(options.Shadow)
	options.Log = p.Log.WithName("webhook." + rules.ShootName)
	p.shoots = rules.NewShootAuthorizer(options, p.seeds)
	p.seedRestriction = restriction.Handler{
		Reader: ofSeeds, Graph: seedGraph, Shoots: shootGraph, Queue: ofSeeds.queue, Clock: p.Clock, Checked: p.Config.Server.SeedAuthorizer.References == config.ReferencesChecked,
		Shadow: shadowReferences(p.Config), Differences: p.differences,
	}
	p.shootRestriction = p.seedRestriction
	p.shootRestriction.Reader, p.shootRestriction.Queue = ofShoots, ofShoots.queue
	return nil
}

// reads creates the client for the webhooks' live reads, with its own connection.
func (p *Process) reads(rows []Row, restConfig *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	own, err := cluster.Connection{REST: restConfig, HTTP: p.Manager.GetHTTPClient()}.Own()
	if err != nil {
		return err
	}
	mapper, err := cluster.Mapper(feature.Garden, feature.AllReads(rows, p.Config))(own.REST, own.HTTP)
	if err != nil {
		return err
	}
	live, err := client.New(own.REST, client.Options{HTTPClient: own.HTTP, Scheme: scheme, Mapper: mapper})
	if err != nil {
		return err
	}
	p.live = readthrough.Shared(live, ratelimit.NewQueue(cluster.Streams, ratelimit.Waiting))
	return nil
}

// add starts the enabled features.
func (p *Process) add(rows []Row) error {
	for _, row := range rows {
		if err := row.Start(context.Background(), p); err != nil {
			return fmt.Errorf("feature %s: %w", row.Name, err)
		}
	}
	return nil
}

// Synced reports whether the graphs are complete (PRC-57, PRC-58).
func (p *Process) Synced() bool { return p.watches.Synced() }

// Awaited returns the names of the kinds that are missing in the graphs.
func (p *Process) Awaited() []string { return p.watches.Awaited() }

// Contact returns an error if a watch has been silent for longer than the configured time.
func (p *Process) Contact() error {
	return p.watches.Contact(p.Config.Server.SeedAuthorizer.MaxStaleness.Duration)
}
