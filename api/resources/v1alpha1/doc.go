// Package v1alpha1 is the API resources.gardener.cloud/v1alpha1: a ManagedResource names Secrets that hold manifests;
// resource-manager applies them to its target cluster, keeps them so, and reports in the status how that went.
//
// The package has the types, the names of labels, annotations, conditions and reasons, and nothing that acts.
//
// +kubebuilder:object:generate=true
// +groupName=resources.gardener.cloud
package v1alpha1
