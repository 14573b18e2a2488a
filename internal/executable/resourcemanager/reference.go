package resourcemanager

import (
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// everything returns the configuration of an instance for a shoot with Machines, with all features.
func everything() *configuration {
	cfg := turned(true)
	cfg.Controllers.CSRApprover.MachineNamespace = ptr.To("shoot--project--name")
	cfg.Webhooks.NodeAgentAuthorizer.MachineNamespace = ptr.To("shoot--project--name")
	cfg.Webhooks.KubernetesServiceHost.Host = "api.example.com"
	return cfg
}

// turned returns a configuration with all switches on or off.
func turned(on bool) *configuration {
	cfg := &configuration{}
	cfg.LeaderElection.ResourceNamespace = "garden"
	cfg.Debugging = &shared.Debugging{}
	cfg.Controllers.ClusterID = ptr.To(config.ClusterIDFromCluster)
	for _, row := range Table() {
		feature.Turn(cfg, row.Switch, on)
	}
	config.SetDefaults(cfg)
	return cfg
}
