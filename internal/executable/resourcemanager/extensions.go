package resourcemanager

import (
	"context"

	"github.com/espalier-project/espalier/internal/endpoint/admission"
	"github.com/espalier-project/espalier/internal/webhook/extensionvalidation"
)

// serveExtensionValidation serves a webhook for each kind (IDX-2: all of them under one switch). They read nothing, so that nothing is waited for.
func serveExtensionValidation(_ context.Context, p *Process) error {
	for _, w := range extensionvalidation.Webhooks() {
		p.Manager.GetWebhookServer().Register(w.Path, admission.New(admission.Options{
			Name: w.Name, Decide: w.Decide, Bodies: p.bodies, Metrics: p.hooks, Log: p.Log.WithName("webhook." + extensionvalidation.Name),
		}))
	}
	return nil
}
