// Package v1alpha1 has the fields of security.gardener.cloud/v1alpha1 that are read.
//
// +kubebuilder:object:generate=true
package v1alpha1
