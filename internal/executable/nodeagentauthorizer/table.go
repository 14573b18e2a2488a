package nodeagentauthorizer

import (
	"context"

	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/executable/agents"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/selectors"
)

// Row is a feature of node-agent-authorizer.
type Row = feature.Row[configuration, *Process]

type configuration = config.NodeAgentAuthorizerConfiguration

// Table returns the one feature, and the guard of its metrics.
func Table() []Row {
	return []Row{
		{
			Name: rules.Name, Runs: feature.EveryReplica,
			Doc:  "Authorizes requests of node agents.",
			Path: rules.Path, Reads: reads, Writes: writes, Metrics: agents.Metrics, Start: start,
		},
		{
			Name: "guard", Switch: feature.GuardSwitch, Runs: feature.EveryReplica,
			Doc:    "Asks the API server who may read metrics, profiles and debug pages.",
			Writes: func(*configuration) []feature.Write { return feature.GuardWrites(feature.Source) }, Start: func(context.Context, *Process) error { return nil }, // The manager serves it.
		},
	}
}

// reads returns the reads for the shoot in the configuration. The shoots of a folder change, so they need Machines of
// any namespace.
func reads(cfg *configuration) []feature.Read {
	if cfg.ShootsDirectory != "" {
		return agents.Reads(ptr.To(""))
	}
	return agents.Reads(cfg.MachineNamespace)
}

// writes returns the writes that check whether selectors are sent (NAA-5). An entry of a folder may also enable that.
func writes(cfg *configuration) []feature.Write {
	if cfg.ShootsDirectory == "" && cfg.AuthorizeWithSelectors != config.SelectorsAuto {
		return nil
	}
	return []feature.Write{selectors.Write(feature.Target)}
}
