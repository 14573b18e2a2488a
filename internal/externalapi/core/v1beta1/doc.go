// Package v1beta1 is the slice of core.gardener.cloud/v1beta1 that is read.
//
// +kubebuilder:object:generate=true
package v1beta1
