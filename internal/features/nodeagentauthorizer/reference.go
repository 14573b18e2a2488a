package nodeagentauthorizer

import (
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reference is the page about the feature, for a shoot with Machines.
func Reference() string {
	cfg := &configuration{}
	cfg.MachineNamespace, cfg.AuthorizeWithSelectors = ptr.To("shoot--project--name"), config.SelectorsAuto
	config.SetDefaults(cfg)
	return feature.Reference("node-agent-authorizer", Table(), cfg)
}
