// Package v1alpha1 is the component configuration of node-agent-authorizer,
// nodeagentauthorizer.config.gardener.cloud/v1alpha1 NodeAgentAuthorizerConfiguration: types, defaults and validation.
//
// A file has apiVersion and kind. The comment of each other field names its default, if it has one. Durations are
// strings in the format of Go's time.ParseDuration, such as 90s or 10m; sizes are quantities, such as 64Mi. An
// administrator writes the file, or a chart renders it.
//
// SetDefaults sets the defaults of a decoded file, and Validate returns all errors of the result, each with the path
// of its field. Profiles are named sets of other defaults. Unknown keys in a file are no error; the process logs a
// warning for each.
//
// +kubebuilder:object:generate=true
package v1alpha1
