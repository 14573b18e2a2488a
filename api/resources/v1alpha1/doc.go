// Package v1alpha1 is the API resources.gardener.cloud/v1alpha1. A ManagedResource names Secrets that hold manifests; resource-manager
// applies them to its target cluster, repairs drift, and reports the result in the status.
//
// Authors set spec, labels and annotations; resource-manager alone sets status. A field that is unset has the default
// that its comment names. The API server checks the CRD's schema only: the conditions report whether manifests can be
// applied.
//
// A ManagedResource is ready if status.observedGeneration is metadata.generation, ResourcesApplied and
// ResourcesHealthy are True, and, for clients that wait for roll-outs, ResourcesProgressing is False. See the example
// of ManagedResourceStatus.
//
// The package has types and the names of labels, annotations, conditions and reasons. It has no logic, and imports no client.
//
// +kubebuilder:object:generate=true
// +groupName=resources.gardener.cloud
package v1alpha1
