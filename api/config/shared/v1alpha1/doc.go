// Package v1alpha1 holds the parts of the component configurations that all executables have in common: connections to
// clusters, leader election, servers and debugging, with their defaults and their validation.
//
// +kubebuilder:object:generate=true
package v1alpha1
