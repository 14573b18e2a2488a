// Package v1alpha1 has the fields of seedmanagement.gardener.cloud/v1alpha1 that are read.
//
// +kubebuilder:object:generate=true
package v1alpha1
