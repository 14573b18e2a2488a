package resourcemanager

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
)

// probeBudget bounds the wait for a cache in a readiness probe (PRC-54). A synced cache responds at once, but on a
// busy machine a smaller budget could be used up before that.
const probeBudget = 200 * time.Millisecond

// run starts the enabled features of the table, and runs until a signal (PRC-10 … PRC-11).
func run(cfg *config.ResourceManagerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)
	p, err := resourcemanager.New(cfg, metrics.Registry, log)
	if err != nil {
		return err
	}
	apiServer := process.APIServerHealthz(p.Clientset.Discovery().RESTClient())
	if err := process.AddChecks(p.Manager, drain,
		process.Check{Name: "apiserver-healthz", Live: process.WithGrace(apiServer, log, p.Clock), Ready: process.UntilFirst(apiServer)},
		process.Check{Name: "managedresources", Ready: func(*http.Request) error { return p.Engine.Ready() }},
		process.LockCheck("locks", p.Engine.TakeLocks, p.Clock),
		process.SyncCheck("source-informer-sync", func() []string { return p.SourceAwaited(probeBudget) }, log),
		process.SyncCheck("target-informer-sync", func() []string { return p.TargetAwaited(probeBudget) }, log)); err != nil {
		return err
	}
	return p.Manager.Start(ctx)
}
