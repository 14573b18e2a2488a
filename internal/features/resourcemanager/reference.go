package resourcemanager

import (
	"k8s.io/utils/ptr"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/feature"
)

// Reference is the page about all features, of an instance for a shoot with Machines.
func Reference() string {
	cfg := &configuration{}
	cfg.LeaderElection.ResourceNamespace = "garden"
	cfg.Controllers.ClusterID = ptr.To(config.ClusterIDFromCluster)
	cfg.Controllers.CSRApprover.MachineNamespace = ptr.To("shoot--project--name")
	cfg.Webhooks.NodeAgentAuthorizer.MachineNamespace = ptr.To("shoot--project--name")
	config.SetDefaults(cfg)
	return feature.Reference("resource-manager", Table(), cfg)
}
