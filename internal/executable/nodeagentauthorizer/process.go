package nodeagentauthorizer

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
	"github.com/espalier-project/espalier/internal/executable/agents"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/tenants"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/reflector"
)

// Process has the state that features share.
type Process struct {
	Config  *configuration
	Manager manager.Manager
	// Checks are the conditions of readiness and liveness, set when the features start.
	Checks []process.Check

	source  cluster.Connection
	metrics *rules.Metrics
	// differences counts the different decisions of shadow policies, of all shoots together.
	differences *authorization.Differences
	views       *view.Metrics
	// bodies bounds the memory of requests, of all shoots together.
	bodies *endpoint.Bodies
	log    logr.Logger
}

// New returns the process, ready to run. It sends no requests.
func New(cfg *configuration, registry prometheus.Registerer, log logr.Logger) (*Process, error) {
	log.Info("Getting rest configs")
	guarded, err := guarding(cfg, log)
	if err != nil {
		return nil, err
	}
	mgr, err := process.NewManager(process.ManagerOptions{
		// The manager needs no cluster, as it has no election and no cache.
		Guard: guarded, REST: &rest.Config{}, Scheme: runtime.NewScheme(), Webhooks: &cfg.Server.Webhooks, HealthProbes: cfg.Server.HealthProbes,
		Metrics: cfg.Server.Metrics, Debugging: cfg.Debugging, Configuration: cfg, Log: log,
	})
	if err != nil {
		return nil, err
	}
	p := &Process{
		Config: cfg, Manager: mgr, metrics: rules.NewMetrics(registry), differences: authorization.NewDifferences(registry, clock.RealClock{}), views: view.NewMetrics(registry), bodies: authorization.NewBodies(),
		log: log.WithName("webhook." + rules.Name),
	}
	if cfg.MachineNamespace != nil || cfg.ShootsDirectory != "" {
		if p.source, err = connect(&cfg.SourceClientConnection, process.RESTConfig); err != nil && cfg.ShootsDirectory == "" {
			return nil, fmt.Errorf("source cluster: %w", err)
		}
	}
	for _, row := range feature.Enabled(Table(), cfg) {
		if err := row.Start(context.Background(), p); err != nil {
			return nil, fmt.Errorf("feature %s: %w", row.Name, err)
		}
	}
	return p, nil
}

// guarding returns the guard that checks readers of metrics with the source.
func guarding(cfg *configuration, log logr.Logger) (*guard.Guard, error) {
	if !feature.IsOn(cfg, feature.GuardSwitch) {
		return nil, nil
	}
	source, err := process.RESTConfig(cfg.SourceClientConnection.Connection())
	if err != nil {
		return nil, fmt.Errorf("source cluster: %w", err)
	}
	return process.Guard(cfg.Debugging, source, log)
}

// start serves the shoot in the configuration, or those in a folder.
func start(_ context.Context, p *Process) error {
	begin := p.serveOne
	if p.Config.ShootsDirectory != "" {
		begin = p.serveMany
	}
	var err error
	p.Checks, err = begin()
	return err
}

func connect(connection *config.ClientConnection, load func(*shared.ClientConnection) (*rest.Config, error)) (cluster.Connection, error) {
	restConfig, err := load(connection.Connection())
	if err != nil {
		return cluster.Connection{}, err
	}
	return cluster.Connect(restConfig)
}

// serveOne serves the shoot in the configuration, and returns the readiness checks (NAA-9).
func (p *Process) serveOne() ([]process.Check, error) {
	shoot, err := connect(&p.Config.TargetClientConnection, process.RESTConfig)
	if err != nil {
		return nil, fmt.Errorf("target cluster: %w", err)
	}
	served, err := p.shoot("", &p.Config.Agents, shoot, nil, p.log)
	if err != nil {
		return nil, err
	}
	followed := served.View
	p.Manager.GetWebhookServer().Register(rules.Path, served.Reviews)
	return []process.Check{
		process.SyncCheck("source-informer-sync", followed.SourceAwaited, p.log), process.SyncCheck("target-informer-sync", followed.TargetAwaited, p.log),
		process.ContactCheck(followed.Silences, p.Config.MaxStaleness.Duration),
	}, p.Manager.Add(followed)
}

// shoot returns the view of a shoot, and the endpoint that uses it.
func (p *Process) shoot(name string, c *config.Agents, target cluster.Connection, bounds *reflector.Bounds, log logr.Logger) (*agents.Shoot, error) {
	mode := view.SelectorsNever
	switch c.AuthorizeWithSelectors {
	case config.SelectorsTrue:
		mode = view.SelectorsAlways
	case config.SelectorsAuto:
		mode = view.SelectorsAuto
	}
	return agents.New(agents.Options{
		View: view.Options{
			Source: p.source, MachineNamespace: ptr.Deref(c.MachineNamespace, ""), Target: target, Bounds: bounds, Selectors: mode,
			Shoot: name, Metrics: p.views, Clock: clock.RealClock{}, Log: log,
		},
		AllowWatchAll: c.Nodes.AllowWatchAll, Shadow: shadowOf(c), Differences: p.differences, Metrics: p.metrics, Bodies: p.bodies,
	})
}

// shadowOf returns the shadow policy for a shoot's agents; nil means that there is none.
func shadowOf(c *config.Agents) *rules.Policy {
	if c.Shadow == nil {
		return nil
	}
	return &rules.Policy{AllowWatchAll: c.Shadow.Nodes.AllowWatchAll, Selectors: c.Shadow.AuthorizeWithSelectors}
}

// directory returns the folder in the configuration.
func (p *Process) directory() *tenants.Directory {
	return tenants.New(tenants.Options{Path: p.Config.ShootsDirectory, Clock: clock.RealClock{}, Log: p.log, Serve: p.serveEntry, Absent: p.absent})
}

// serveEntry serves a shoot of the folder until the context ends, or the shoot exceeds its limits.
func (p *Process) serveEntry(ctx context.Context, name string, entry *config.ShootEntry) (tenants.Handler, error) {
	target, err := connect(&entry.TargetClientConnection, process.TenantConfig)
	if err != nil {
		return tenants.Handler{}, fmt.Errorf("target cluster: %w", err)
	}
	if entry.MachineNamespace != nil && p.source.REST == nil {
		return tenants.Handler{}, fmt.Errorf("the shoot has Machines, but there is no connection to the source cluster")
	}
	limits := p.Config.ShootLimits
	served, err := p.shoot(name, &entry.Agents, target, reflector.NewBounds(int(limits.Pages), limits.ListTimeout.Duration), p.log.WithValues("shoot", name))
	if err != nil {
		return tenants.Handler{}, err
	}
	var ended atomic.Bool
	go func() {
		if err := served.View.Start(ctx); err != nil {
			p.log.Error(err, "Shoot cannot be followed", "shoot", name)
		}
		target.HTTP.CloseIdleConnections()
		ended.Store(true)
	}()
	return tenants.Handler{Handler: served.Reviews, Ready: served.View.Synced, Ended: ended.Load}, nil
}

// serveMany serves the shoots of a folder, each under its own path. Readiness does not depend on single shoots, so
// one that cannot be reached does not affect the others; its own requests get 503 until its state is known.
func (p *Process) serveMany() ([]process.Check, error) {
	directory := p.directory()
	p.Manager.GetWebhookServer().Register(rules.Path+"/", directory)
	nothing := func() []string { return nil }
	return []process.Check{
		process.SyncCheck("source-informer-sync", nothing, p.log), process.SyncCheck("target-informer-sync", process.Until("the folder of shoots", directory.Read), p.log),
	}, p.Manager.Add(directory)
}

// absent returns the handler for a shoot without an entry: agents are denied, and for others there is no opinion.
func (p *Process) absent(name string) http.Handler {
	return authorization.New(authorization.Options{Authorizer: noShoot(name), Concerns: rules.IsAgent, DenyOnError: true, Bodies: p.bodies, Log: p.log})
}

type noShoot string

// Authorize implements authorizer.UnconditionalAuthorizer.
func (n noShoot) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", endpoint.WithStatus(http.StatusNotFound, fmt.Errorf("no shoot %q is served", string(n)))
}
