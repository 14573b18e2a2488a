package nodeagentauthorizer

import "github.com/espalier-project/espalier/internal/process"

// The texts of the help.
const (
	long = `It runs next to the kube-apiserver of a shoot, or once for many shoots, in two replicas or more, without leader election.

The shoot's kube-apiserver asks it about every request of these agents.
It decides by the Nodes, Pods and certificate signing requests of the shoot (the target) and by the Machines of the
source. It accepts the configuration of a resource-manager, too.`

	smallest = `apiVersion: nodeagentauthorizer.config.gardener.cloud/v1alpha1
kind: NodeAgentAuthorizerConfiguration
targetClientConnection:
  kubeconfig: /etc/target/kubeconfig
`
)

var (
	environment = []process.Term{
		{Name: "KUBECONFIG", Text: "path of the source's kubeconfig, before sourceClientConnection.kubeconfig"},
		{Name: "TARGET_KUBECONFIG", Text: "path of the target's kubeconfig, before targetClientConnection.kubeconfig"},
	}
	documents = []string{"docs/operations/node-agent-authorizer.md", "docs/reference/node-agent-authorizer-configuration.md", "docs/reference/node-agent-rules.md"}
)
