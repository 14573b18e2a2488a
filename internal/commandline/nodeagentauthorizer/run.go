package nodeagentauthorizer

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/process"
)

// run starts the features of the table, and runs until a signal.
func run(cfg *config.NodeAgentAuthorizerConfiguration, log logr.Logger) error {
	drain := &process.Drain{}
	ctx := process.SignalContext(drain)
	p, err := nodeagentauthorizer.New(cfg, metrics.Registry, log)
	if err != nil {
		return err
	}
	if err := process.AddChecks(p.Manager, drain, p.Checks...); err != nil {
		return err
	}
	return p.Manager.Start(ctx)
}
