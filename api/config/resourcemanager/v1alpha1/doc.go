// Package v1alpha1 is the component configuration of resource-manager,
// resourcemanager.config.gardener.cloud/v1alpha1 ResourceManagerConfiguration: types, defaults and validation.
//
// A file has apiVersion and kind; each other field that is unset gets the default that its comment names. Durations are texts as Go's
// time.ParseDuration takes them, such as 90s or 10m; sizes are quantities, such as 64Mi. Administrators write the file, or a chart does.
//
// SetDefaults sets the defaults of a decoded file, and Validate returns all faults of the result, each with the path of its field. Profiles
// are other defaults by name, and Aliases the older keys that a file may have. A file with unknown keys is read; the process logs a warning for each.
//
// +kubebuilder:object:generate=true
package v1alpha1
