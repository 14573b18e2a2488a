package resourcemanager

import (
	"context"

	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/executable/agents"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
	"github.com/espalier-project/espalier/internal/process"
)

func nodeAgentReads(cfg *configuration) []feature.Read {
	return agents.Reads(cfg.Webhooks.NodeAgentAuthorizer.MachineNamespace)
}

// startNodeAgents serves the node-agent authorizer on every replica (C17: both resource-manager and the standalone
// executable serve it).
func startNodeAgents(_ context.Context, p *Process) error {
	c := &p.Config.Webhooks.NodeAgentAuthorizer
	mode := view.SelectorsNever
	if ptr.Deref(c.AuthorizeWithSelectors, false) {
		mode = view.SelectorsAlways
	}
	shoot, err := agents.New(agents.Options{
		View: view.Options{
			Source: p.Source.Connection, MachineNamespace: ptr.Deref(c.MachineNamespace, ""), Target: p.Target.Connection, Selectors: mode,
			Metrics: view.NewMetrics(p.Registry), Clock: p.Clock, Log: p.Log.WithName("webhook." + rules.Name),
		},
		AllowWatchAll: c.Nodes.AllowWatchAll, Shadow: shadowOf(c), Differences: authorization.NewDifferences(p.Registry, p.Clock), Metrics: rules.NewMetrics(p.Registry),
	})
	if err != nil {
		return err
	}
	p.agents = shoot.View
	p.Manager.GetWebhookServer().Register(rules.Path, shoot.Reviews)
	contact := process.ContactCheck(shoot.View.Silences, c.MaxStaleness.Duration)
	if err := p.Manager.AddReadyzCheck(contact.Name, contact.Ready); err != nil {
		return err
	}
	return p.Manager.Add(shoot.View)
}

// shadowOf returns the shadow policy of the node-agent authorizer; nil means that there is none.
func shadowOf(c *config.NodeAgentAuthorizerWebhookConfig) *rules.Policy {
	if c.Shadow == nil {
		return nil
	}
	return &rules.Policy{AllowWatchAll: c.Shadow.Nodes.AllowWatchAll, Selectors: c.Shadow.AuthorizeWithSelectors}
}
