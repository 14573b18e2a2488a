package resourcemanager

import (
	"context"

	"github.com/espalier-project/espalier/internal/controller/csrapprover"
)

func startCSRApprover(_ context.Context, p *Process) error {
	return csrapprover.New(csrapprover.Options{
		Config: p.Config.Controllers.CSRApprover, Requests: p.Target.Cache, Approvals: p.Target.Client.SubResource("approval"),
		Target: p.Target.Client, Source: p.Source.Client, Metrics: csrapprover.NewMetrics(p.Registry),
	}).AddToManager(p.Manager, p.Target.Cache, p.Config.Controllers.CacheSyncTimeout.Duration)
}
