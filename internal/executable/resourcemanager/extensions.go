package resourcemanager

import (
	"context"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
)

// validating returns the row of the webhooks for extension resources, one for each kind (IDX-2: one switch for all of
// them). They have no reads, so they wait for nothing.
func validating(row Row) Row {
	row.Runs, row.Metrics = feature.EveryReplica, feature.Registers(admission.NewMetrics)
	row.Start = func(_ context.Context, p *Process) error {
		only := p.onlyReports(&row)
		for _, w := range extensionvalidation.Webhooks() {
			p.Manager.GetWebhookServer().Register(w.Path, admission.New(admission.Options{
				Name: w.Name, Decide: w.Decide, OnlyReport: only, Bodies: p.bodies, Metrics: p.hooks, Log: p.Log.WithName("webhook." + row.Name),
			}))
		}
		return nil
	}
	return row
}
