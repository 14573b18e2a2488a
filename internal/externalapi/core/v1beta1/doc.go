// Package v1beta1 has the fields of core.gardener.cloud/v1beta1 that are read.
//
// +kubebuilder:object:generate=true
package v1beta1
