// Package nodeagentauthorizer holds the manifests that let a shoot's kube-apiserver ask node-agent-authorizer.
package nodeagentauthorizer

import _ "embed"

// URL is the address of the authorizer in the manifests.
const URL = "https://node-agent-authorizer"

// The manifests.
var (
	//go:embed authorization-configuration.yaml
	AuthorizationConfiguration []byte
	//go:embed node-agent-authorizer-kubeconfig.yaml
	Kubeconfig []byte
)
