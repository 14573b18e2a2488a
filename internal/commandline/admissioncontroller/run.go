package admissioncontroller

import (
	"net/http"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/admissioncontroller"
	"github.com/espalier-project/espalier/internal/process"
)

// run starts the enabled features of the table, and runs until a signal.
func run(cfg *config.AdmissionControllerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)
	p, err := admissioncontroller.New(cfg, metrics.Registry, log)
	if err != nil {
		return err
	}
	if err := process.AddChecks(p.Manager, drain,
		process.SyncCheck("informer-sync", p.Awaited, log), // Not ready before the graph is complete, not live if that lasts (PRC-57, PRC-58).
		process.Check{Name: "watch-contact", Ready: func(*http.Request) error { return p.Contact() }}); err != nil {
		return err
	}
	return p.Manager.Start(ctx)
}
