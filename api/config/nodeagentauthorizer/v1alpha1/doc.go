// Package v1alpha1 is the component configuration of node-agent-authorizer,
// nodeagentauthorizer.config.gardener.cloud/v1alpha1 NodeAgentAuthorizerConfiguration: types, defaults and validation.
//
// +kubebuilder:object:generate=true
package v1alpha1
