package main

import (
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/agentview"
	"github.com/espalier-project/espalier/internal/authorizer/nodeagent"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/internal/serve/review"
)

// serveNodeAgents serves the node-agent authorizer on every replica if it is enabled (C17); else it returns nil.
func serveNodeAgents(cfg *config.ResourceManagerConfiguration, mgr manager.Manager, source, target agentview.Cluster, log logr.Logger) (*agentview.View, error) {
	c := &cfg.Webhooks.NodeAgentAuthorizer
	if !c.Enabled {
		return nil, nil
	}
	log = log.WithName("webhook." + nodeagent.Name)
	mode := agentview.SelectorsNever
	if ptr.Deref(c.AuthorizeWithSelectors, false) {
		mode = agentview.SelectorsAlways
	}
	view, err := agentview.New(agentview.Options{
		Source: source, MachineNamespace: ptr.Deref(c.MachineNamespace, ""), Target: target, Selectors: mode,
		Metrics: agentview.NewMetrics(metrics.Registry), Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return nil, err
	}
	authorizer := &nodeagent.Authorizer{View: view, ByMachine: view.ByMachine(), AllowWatchAll: c.Nodes.AllowWatchAll, Metrics: nodeagent.NewMetrics(metrics.Registry), Log: log}
	mgr.GetWebhookServer().Register(nodeagent.Path, review.New(review.Options{Authorizer: authorizer, Ready: view.Synced, Concerns: nodeagent.IsAgent, DenyOnError: true, Log: log}))
	contact := process.ContactCheck(view.Silences, c.MaxStaleness.Duration)
	if err := mgr.AddReadyzCheck(contact.Name, contact.Ready); err != nil {
		return nil, err
	}
	return view, mgr.Add(view)
}
