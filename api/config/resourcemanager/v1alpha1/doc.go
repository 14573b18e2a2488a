// Package v1alpha1 is the component configuration of resource-manager,
// resourcemanager.config.gardener.cloud/v1alpha1 ResourceManagerConfiguration: types, defaults and validation.
//
// +kubebuilder:object:generate=true
package v1alpha1
