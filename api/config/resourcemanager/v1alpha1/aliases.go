package v1alpha1

import (
	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// Aliases are keys of older configurations and of the documentation, with the keys that they stand for (contract,
// operations 1.8).
var Aliases = []shared.Alias{
	{Old: "controllers.managedResources", New: "controllers.managedResource", Silent: true},
	{Old: "controllers.kubeletCSRApprover", New: "controllers.csrApprover", EmptyIsUnset: []string{"machineNamespace"}},
	{Old: "controllers.node", New: "controllers.nodeCriticalComponents"},
	{Old: "controllers.tokenValidator", New: "controllers.tokenInvalidator"},
	{Old: "webhooks.tokenValidator", New: "webhooks.tokenInvalidator"},
	{Old: "controllers.secret", Dropped: "the finalizers on Secrets that it was for are not set any more"},
	{Old: "controllers.rootCAPublisher", Dropped: "kube-controller-manager publishes the CA"},
	{Old: "controllers.garbageCollector.considerManagedResources", Dropped: "ManagedResources are always considered"},
}
