package resourcemanager

import (
	"context"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/controller/csrapprover"
	"github.com/espalier-project/espalier/internal/controller/garbagecollector"
	"github.com/espalier-project/espalier/internal/controller/kit"
	"github.com/espalier-project/espalier/internal/controller/node/criticalcomponents"
	"github.com/espalier-project/espalier/internal/controller/node/highavailability"
	"github.com/espalier-project/espalier/internal/controller/node/reconciliationdelay"
	tokeninvalidation "github.com/espalier-project/espalier/internal/controller/tokeninvalidator"
	"github.com/espalier-project/espalier/internal/controller/tokenrequestor"
	"github.com/espalier-project/espalier/internal/marked"
)

func startCSRApprover(_ context.Context, p *Process) error {
	return csrapprover.New(csrapprover.Options{
		Config: p.Config.Controllers.CSRApprover, Requests: p.Target.Cache, Approvals: p.Target.Client.SubResource("approval"),
		Target: p.Target.Client, Source: p.Source.Client, Metrics: csrapprover.NewMetrics(p.Registry),
	}).AddToManager(p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}

func startTokenRequestor(_ context.Context, p *Process) error {
	return tokenrequestor.New(tokenrequestor.Options{
		Config: p.Config.Controllers.TokenRequestor, Source: p.Source.Client, Target: p.Target.Client, CA: bundle(p.Target), Clock: p.Clock,
		Notes: kit.NewNotes(p.Source.Client, p.Clock, tokenrequestor.Name+"-controller"), Metrics: tokenrequestor.NewMetrics(p.Registry),
	}).AddToManager(p.Manager, p.Source.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}

// bundle returns a function that reads the CA of a cluster's API server, possibly from a file (TR-23b).
func bundle(c *cluster.Cluster) func() ([]byte, error) {
	tls := c.REST.TLSClientConfig
	return func() ([]byte, error) {
		if len(tls.CAData) > 0 || tls.CAFile == "" {
			return tls.CAData, nil
		}
		return os.ReadFile(tls.CAFile)
	}
}

func startCriticalComponents(ctx context.Context, p *Process) error {
	return criticalcomponents.New(criticalcomponents.Options{
		Config: p.Config.Controllers.NodeCriticalComponents, Kept: p.Target.Cache, CSINodes: p.Target.Client, Nodes: p.Target.Client,
		Notes: kit.NewNotes(p.Target.Client, p.Clock, criticalcomponents.Name+"-controller"),
	}).AddToManager(ctx, p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}

func startReconciliationDelay(_ context.Context, p *Process) error {
	return reconciliationdelay.New(reconciliationdelay.Options{
		Config: p.Config.Controllers.NodeAgentReconciliationDelay, Kept: p.Target.Cache, Live: p.Target.Client,
	}).AddToManager(p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}

func startHighAvailability(_ context.Context, p *Process) error {
	return highavailability.New(highavailability.Options{Kept: p.Target.Cache, Live: p.Target.Client, Namespaces: p.Config.TargetClientConnection.Namespaces}).
		AddToManager(p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}

func startGarbageCollector(_ context.Context, p *Process) error {
	return garbagecollector.New(garbagecollector.Options{
		Config: p.Config.Controllers.GarbageCollector, Namespaces: p.Config.TargetClientConnection.Namespaces, Target: p.Target.Client, Marked: p.Marked,
		Clock: p.Clock, Metrics: garbagecollector.NewMetrics(p.Registry),
	}).AddToManager(p.Manager, p.Config.Controllers.CacheSyncTimeout.Duration)
}

// NewMarked returns the set of marked objects, which the collector, the engine and the webhooks of a process share.
func NewMarked(p *Process) *marked.Set {
	return marked.New(marked.Options{
		Target: p.Target.Client, Namespaces: p.Config.TargetClientConnection.Namespaces, Period: p.Config.Controllers.GarbageCollector.SyncPeriod.Duration,
		Clock: p.Clock, Metrics: marked.NewMetrics(p.Registry), Log: p.Log.WithName(garbagecollector.Name),
	})
}

// collectorMetrics registers the metrics of the collector and of the set of marked objects.
func collectorMetrics(registry prometheus.Registerer) {
	garbagecollector.NewMetrics(registry)
	marked.NewMetrics(registry)
}

func startTokenInvalidator(_ context.Context, p *Process) error {
	return tokeninvalidation.New(tokeninvalidation.Options{Config: p.Config.Controllers.TokenInvalidator, Live: p.Target.Client, Kept: p.Target.Cache}).
		AddToManager(p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}
