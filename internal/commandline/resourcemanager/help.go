package resourcemanager

import "github.com/espalier-project/espalier/internal/process"

const (
	sourceVariable = "KUBECONFIG"
	targetVariable = "TARGET_KUBECONFIG"
)

// The texts of the help.
const (
	long = `It runs once per seed, where source and target are that seed, and once per shoot, where the source is the
namespace of the shoot's control plane in the seed and the target is the shoot.

The configuration switches on more controllers, and webhooks for the target.
One of several replicas leads, by a Lease in the source; all of them serve webhooks, probes and metrics.`

	smallest = `apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection:
  resourceNamespace: garden # in a Pod its own namespace is the default
`
)

var (
	environment = []process.Term{
		{Name: sourceVariable, Text: "path of the source's kubeconfig, before sourceClientConnection.kubeconfig"},
		{Name: targetVariable, Text: "path of the target's kubeconfig, before targetClientConnection.kubeconfig"},
	}
	documents = []string{
		"docs/operations/resource-manager.md", "docs/reference/resource-manager-configuration.md", "docs/reference/resource-manager-features.md",
		"docs/concepts/managed-resources.md",
	}
)
