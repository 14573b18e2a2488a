package resourcemanager

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/marked"
)

// hook returns the row of a webhook: every replica serves it under its path (CW-10), and responds with 503 until the
// row's reads are synced.
func hook(row Row, decide func(*Process) (admission.Func, error)) Row {
	row.Runs, row.Metrics = feature.EveryReplica, feature.Registers(admission.NewMetrics)
	row.Start = func(_ context.Context, p *Process) error {
		does, err := decide(p)
		if err != nil {
			return err
		}
		does = unmarking(p.Marked, does)
		p.Manager.GetWebhookServer().Register(row.Path, admission.New(admission.Options{
			Name: row.Name, Decide: does, Ready: p.kept[row.Path].Synced, OnlyReport: p.onlyReports(&row), Bodies: p.bodies, Metrics: p.hooks,
			Log: p.Log.WithName("webhook." + row.Name),
		}))
		return nil
	}
	return row
}

// onlyReports reports whether a webhook only reports its refusals (SHD-8).
func (p *Process) onlyReports(row *Row) bool {
	only := row.Validating != nil && slices.Contains(p.Config.Webhooks.OnlyReport, row.Name)
	if only {
		p.Log.Info("A webhook only reports: nothing is refused", "webhook", row.Name)
	}
	return only
}

// unmarking returns a webhook that also removes the marks of objects to which an admitted object refers (GC-20).
func unmarking(set *marked.Set, does admission.Func) admission.Func {
	if set == nil {
		return does
	}
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (admission.Patch, error) {
		patch, err := does(ctx, request)
		if err == nil {
			set.Admits(ctx, request)
		}
		return patch, err
	}
}
