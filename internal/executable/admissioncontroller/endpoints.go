package admissioncontroller

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/seedauthorizer/debug"
	"github.com/espalier-project/espalier/internal/seedauthorizer/rules"
)

// review serves an authorizer under a path. It has decisions once the graph is complete.
func (p *Process) review(name, path string, decides *rules.Authorizer) error {
	p.Manager.GetWebhookServer().Register(path, authorization.New(authorization.Options{
		Authorizer: decides, Ready: authorization.WhenSynced(p.watches.Synced), Bodies: p.reviews, Log: p.Log.WithName("webhook." + name),
	}))
	return nil
}

// decision is the function of a restriction.
type decision = func(context.Context, *admissionv1.AdmissionRequest) error

// restricting returns the row of a restriction.
func restricting(row Row, decides func(*Process, logr.Logger) decision) Row {
	row.Runs, row.Metrics = feature.EveryReplica, feature.Registers(admission.NewMetrics)
	row.Start = func(_ context.Context, p *Process) error {
		p.Manager.GetWebhookServer().Register(row.Path, p.restricts(&row, decides(p, p.Log.WithName("webhook."+row.Name)), p.watches.Synced))
		return nil
	}
	return row
}

// restricts returns the endpoint of a restriction. Restrictions use the graph: before it is complete they would
// refuse requests for objects that it does not have yet, and a client does not retry after a 403.
func (p *Process) restricts(row *Row, decides decision, synced func() bool) http.Handler {
	return admission.New(admission.Options{
		Name: row.Name, Decide: admission.Decide(decides), Ready: synced, OnlyReport: p.onlyReports(row), Bodies: p.judged, Metrics: p.hooks,
		Log: p.Log.WithName("webhook." + row.Name),
	})
}

// page returns the row of the debug page of a graph.
func page(name, path string, of func(*Process) *rules.Authorizer) Row {
	return Row{
		Name: name, Switch: "server.enableDebugHandlers", Runs: feature.EveryReplica,
		Doc: "Shows a graph and explains decisions, to everybody without `debugging.authentication`.", Path: path,
		Start: func(_ context.Context, p *Process) error {
			a := of(p)
			var handler http.Handler = &debug.Handler{Path: path, Graph: a.Graph, Authorizer: a, Pages: p.pages, Log: p.Log}
			if p.guard != nil {
				handler = p.guard.Wrap(handler)
			} else {
				p.Log.Info("Serving the debug page of a graph without authentication", "path", path)
			}
			p.Manager.GetWebhookServer().Register(path, handler)
			return nil
		},
	}
}

// indexed returns the row of a webhook that finds users of an object in the index: it responds with 503 until the
// graph is complete, which is also a condition of readiness.
func indexed(row Row, decide func(*Process) (admission.Func, error)) Row {
	return hooked(row, decide, func(p *Process) func() bool { return p.watches.Synced })
}

// hook returns the row of a webhook that is not a restriction, and that needs no index.
func hook(row Row, decide func(*Process) (admission.Func, error)) Row {
	return hooked(row, decide, func(*Process) func() bool { return nil })
}

func hooked(row Row, decide func(*Process) (admission.Func, error), ready func(*Process) func() bool) Row {
	row.Runs, row.Metrics = feature.EveryReplica, feature.Registers(admission.NewMetrics)
	row.Start = func(_ context.Context, p *Process) error {
		does, err := decide(p)
		if err != nil {
			return err
		}
		options := admission.Options{
			Name: row.Name, Decide: does, OnlyReport: p.onlyReports(&row), Ready: ready(p), Bodies: p.bodies, Metrics: p.hooks,
			Log: p.Log.WithName("webhook." + row.Name),
		}
		p.Manager.GetWebhookServer().Register(row.Path, admission.New(options))
		return nil
	}
	return row
}

// rejecting returns the row of a webhook that counts its refusals (OBS-20).
func rejecting(row Row) Row {
	row.Metrics = func(registry prometheus.Registerer) {
		admission.NewMetrics(registry)
		admission.NewRejections(registry)
	}
	return row
}
