package resourcemanager

import (
	"context"

	"k8s.io/utils/ptr"

	"github.com/espalier-project/espalier/internal/agentview"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/executable/agents"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/process"
)

func nodeAgentReads(cfg *configuration) []feature.Read {
	return agents.Reads(cfg.Webhooks.NodeAgentAuthorizer.MachineNamespace)
}

// startNodeAgents serves the node-agent authorizer on every replica (C17: resource-manager serves it as well as the standalone executable).
func startNodeAgents(_ context.Context, p *Process) error {
	c := &p.Config.Webhooks.NodeAgentAuthorizer
	mode := agentview.SelectorsNever
	if ptr.Deref(c.AuthorizeWithSelectors, false) {
		mode = agentview.SelectorsAlways
	}
	shoot, err := agents.New(agents.Options{
		View: agentview.Options{
			Source: p.Source.Connection, MachineNamespace: ptr.Deref(c.MachineNamespace, ""), Target: p.Target.Connection, Selectors: mode,
			Metrics: agentview.NewMetrics(p.Registry), Clock: p.Clock, Log: p.Log.WithName("webhook." + nodeagent.Name),
		},
		AllowWatchAll: c.Nodes.AllowWatchAll, Metrics: nodeagent.NewMetrics(p.Registry),
	})
	if err != nil {
		return err
	}
	p.agents = shoot.View
	p.Manager.GetWebhookServer().Register(nodeagent.Path, shoot.Reviews)
	contact := process.ContactCheck(shoot.View.Silences, c.MaxStaleness.Duration)
	if err := p.Manager.AddReadyzCheck(contact.Name, contact.Ready); err != nil {
		return err
	}
	return p.Manager.Add(shoot.View)
}
