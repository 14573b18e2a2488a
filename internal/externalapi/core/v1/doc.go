// Package v1 is the slice of core.gardener.cloud/v1 that is read.
//
// +kubebuilder:object:generate=true
package v1
