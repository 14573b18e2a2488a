package resourcemanager

import (
	"context"

	"github.com/espalier-project/espalier/internal/serve/admit"
)

// hook serves a webhook under a path; it is answered with 503 until what its feature reads is complete (CW-10: on every replica).
func hook(name, path string, decide func(*Process) (admit.Func, error)) func(context.Context, *Process) error {
	return func(_ context.Context, p *Process) error {
		does, err := decide(p)
		if err != nil {
			return err
		}
		p.Manager.GetWebhookServer().Register(path, admit.New(admit.Options{
			Name: name, Decide: does, Ready: p.kept[path].Synced, Bodies: p.bodies, Metrics: p.hooks, Log: p.Log.WithName("webhook." + name),
		}))
		return nil
	}
}
