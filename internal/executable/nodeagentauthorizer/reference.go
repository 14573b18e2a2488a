package nodeagentauthorizer

import (
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// everything returns the configuration for a shoot with Machines, and with any API server.
func everything() *configuration {
	cfg := least()
	cfg.Debugging = &shared.Debugging{Authentication: shared.Authentication{Enabled: true}}
	cfg.MachineNamespace, cfg.AuthorizeWithSelectors = ptr.To("shoot--project--name"), config.SelectorsAuto
	return cfg
}

// least returns the configuration for a shoot without Machines.
func least() *configuration {
	cfg := &configuration{}
	config.SetDefaults(cfg)
	return cfg
}
