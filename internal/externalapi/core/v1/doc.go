// Package v1 has the fields of core.gardener.cloud/v1 that are read.
//
// +kubebuilder:object:generate=true
package v1
