package admissioncontroller

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

// Rehearse runs the features that start with the process, until the graphs are complete. Handlers are left out, as
// they write nothing without a request.
func Rehearse(ctx context.Context, cfg *configuration, r *process.DryRun) error {
	cfg.Server.HealthProbes, cfg.Server.Metrics, cfg.Debugging = nil, nil, nil
	rows := slices.DeleteFunc(feature.Enabled(Table(), cfg), func(row Row) bool { return row.Path != "" })
	p, err := assemble(cfg, rows, r.RESTConfig(string(feature.Garden)), metrics.Registry, r.Log)
	if err != nil {
		return err
	}
	return r.Run(ctx, p.Manager, func() error {
		if p.Synced() {
			return nil
		}
		return errors.New("not complete: " + strings.Join(p.Awaited(), ", "))
	})
}
