// Package v1alpha1 is the slice of security.gardener.cloud/v1alpha1 that is read.
//
// +kubebuilder:object:generate=true
package v1alpha1
