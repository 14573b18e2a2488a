package v1alpha1

// Types of the conditions that resource-manager sets (MRA-6).
const (
	// ResourcesApplied reports whether all objects were applied.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy reports whether all objects exist and are healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing reports whether an object is still being rolled out: False is good.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
	// Ready, Reconciling and Stalled follow from the other conditions, for clients that use kstatus. They are set if
	// controllers.managedResource.readyCondition is true.
	Ready       ConditionType = "Ready"
	Reconciling ConditionType = "Reconciling"
	Stalled     ConditionType = "Stalled"
)

// Statuses of conditions.
const (
	// ConditionTrue means that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse means that the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown means that it is unknown whether the condition holds, for example before the first check.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing is a status of ResourcesApplied only: manifests are being applied, or objects without a
	// manifest are being deleted.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Reasons of conditions (MRS-5 … MRS-13). Other reasons of failed health checks consist of the kind and Unhealthy,
// Missing or Progressing: for example DeploymentUnhealthy.
const (
	// ReasonConditionInitialized is the reason of each condition before the first run.
	ReasonConditionInitialized = "ConditionInitialized"
	// ReasonApplySucceeded is a reason of ResourcesApplied=True: each object matches its manifest.
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonApplyFailed is a reason of ResourcesApplied=False: the message names the objects that could not be
	// applied, and the errors.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonApplyProgressing is a reason of ResourcesApplied=Progressing: changed manifests are being applied.
	ReasonApplyProgressing = "ApplyProgressing"
	// ReasonDecodingFailed is a reason of ResourcesApplied=False: the message names the documents that are not
	// manifests. No object is deleted.
	ReasonDecodingFailed = "DecodingFailed"
	// ReasonCannotReadSecret is a reason of ResourcesApplied=False: a Secret of spec.secretRefs is missing or cannot
	// be read. No object is changed.
	ReasonCannotReadSecret = "CannotReadSecret"
	// ReasonDeletionFailed is a reason of ResourcesApplied=False: the message names the objects whose deletion was
	// refused.
	ReasonDeletionFailed = "DeletionFailed"
	// ReasonDeletionPending is a reason of ResourcesApplied=Progressing: the message names the objects that are still
	// being deleted, and their finalizers. The health conditions have it, too, while the ManagedResource is being
	// deleted.
	ReasonDeletionPending = "DeletionPending"
	// ReasonDeletionHeld is a reason of ResourcesApplied=False: many objects, or objects of critical kinds, would be
	// deleted because their manifests vanished. The message names them, and the value of AnnotationConfirmDeletion
	// that lets the run continue at once.
	ReasonDeletionHeld = "DeletionHeld"
	// ReasonReleaseOfOrphansFailed is a reason of ResourcesApplied=False: an object with AnnotationMode could not be
	// released.
	ReasonReleaseOfOrphansFailed = "ReleaseOfOrphanedResourcesFailed"
	// ReasonIgnored is the reason of all three conditions if the ManagedResource has AnnotationIgnore: it is not
	// reconciled.
	ReasonIgnored = "ManagedResourceIgnored"
	// ReasonChecksPending is a reason of ResourcesHealthy and ResourcesProgressing: the new objects were not checked
	// yet.
	ReasonChecksPending = "ChecksPending"
	// ReasonResourcesHealthy is the reason of ResourcesHealthy=True: all objects are healthy.
	ReasonResourcesHealthy = "ResourcesHealthy"
	// ReasonResourcesReady is the reason of Ready=True: all objects are applied, healthy and rolled out.
	ReasonResourcesReady = "ResourcesReady"
	// ReasonResourcesRolledOut is the reason of ResourcesProgressing=False: all objects are rolled out.
	ReasonResourcesRolledOut = "ResourcesRolledOut"
	// ReasonHealthCheckError is a reason of ResourcesHealthy=Unknown or False: an object could not be read or
	// checked; the message has the error.
	ReasonHealthCheckError = "HealthCheckError"
)

// Annotations and labels (contract, managed-resources 1.3).
const (
	// AnnotationIgnore on a ManagedResource or on an object keeps resource-manager from changing it.
	AnnotationIgnore = "resources.gardener.cloud/ignore"
	// AnnotationMode with the value ModeIgnore on an object makes resource-manager release the object.
	AnnotationMode = "resources.gardener.cloud/mode"
	// ModeIgnore is the only value of AnnotationMode.
	ModeIgnore = "Ignore"
	// AnnotationSkipHealthCheck on a live object makes it count as healthy and rolled out.
	AnnotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// AnnotationDeleteOnInvalidUpdate on an object lets resource-manager delete and create it again when an update is
	// refused as invalid.
	AnnotationDeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// AnnotationDeletionPropagationOnInvalidUpdate is the propagation policy of that deletion.
	AnnotationDeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// AnnotationKeepObject on a live object keeps resource-manager from deleting it.
	AnnotationKeepObject = "resources.gardener.cloud/keep-object"
	// AnnotationPreserveReplicas on an object keeps spec.replicas of the live object.
	AnnotationPreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// AnnotationPreserveResources on an object keeps the resources of the live containers.
	AnnotationPreserveResources = "resources.gardener.cloud/preserve-resources"
	// AnnotationLeaveAloneUntil on a live object or on a ManagedResource is a time in RFC 3339 until which nothing is
	// repaired there.
	AnnotationLeaveAloneUntil = "resources.gardener.cloud/leave-alone-until"
	// AnnotationLeaveAloneReason is the reason for AnnotationLeaveAloneUntil, for people.
	AnnotationLeaveAloneReason = "resources.gardener.cloud/leave-alone-reason"
	// AnnotationAllowHolds on a ManagedResource decides whether AnnotationLeaveAloneUntil has an effect on its live
	// objects: "true" or "false". Unset means the value of the configuration.
	AnnotationAllowHolds = "resources.gardener.cloud/allow-holds"
	// AnnotationConfirmDeletion on a ManagedResource confirms a deletion that waits (ReasonDeletionHeld), by the
	// checksum of the objects to be deleted. resource-manager sets it when the wait is over, and removes it when
	// nothing is to be deleted.
	AnnotationConfirmDeletion = "resources.gardener.cloud/confirm-deletion"
	// AnnotationFinalizeDeletionAfter on a live object is the time from its deletion until its finalizers are
	// removed.
	AnnotationFinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// AnnotationOrigin names the ManagedResource of an object.
	AnnotationOrigin = "resources.gardener.cloud/origin"
	// AnnotationDescription asks people not to edit the object; resource-manager sets it on every managed object.
	AnnotationDescription = "resources.gardener.cloud/description"
	// DescriptionValue is the value of AnnotationDescription.
	DescriptionValue = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n" +
		"Any modifications are discarded and the resource is returned to the original state."
	// LabelManagedBy is on every managed object.
	LabelManagedBy = "resources.gardener.cloud/managed-by"
	// LabelGarbageCollectableReference marks ConfigMaps and Secrets that the garbage collector deletes.
	LabelGarbageCollectableReference = "resources.gardener.cloud/garbage-collectable-reference"
	// LabelCondemned has the value "true" on objects that the garbage collector deletes in a later run, unless something refers to them before.
	LabelCondemned = "resources.gardener.cloud/condemned"
	// AnnotationCondemnedAt is the time at which the garbage collector marked the object for deletion, in RFC 3339 with
	// nanoseconds.
	AnnotationCondemnedAt = "resources.gardener.cloud/condemned-at"
	// AnnotationCondemnedAs is a digest of the metadata that the object had when it was marked. A mark has no effect
	// once the object has changed.
	AnnotationCondemnedAs = "resources.gardener.cloud/condemned-as"
	// AnnotationReferencePrefix starts the annotations that keep garbage-collectable objects.
	AnnotationReferencePrefix = "reference.resources.gardener.cloud/"
	// AnnotationOperation on a ManagedResource requests an operation.
	AnnotationOperation = "gardener.cloud/operation"
	// OperationReconcile, OperationMigrate, OperationRestore and OperationWaitForState are the values of AnnotationOperation.
	OperationReconcile    = "reconcile"
	OperationMigrate      = "migrate"
	OperationRestore      = "restore"
	OperationWaitForState = "wait-for-state"

	// FinalizerName is the finalizer of the classes "resources" and "*", and the prefix of all others (MRK-3).
	FinalizerName = "resources.gardener.cloud/gardener-resource-manager"
	// DefaultClass is the class of ManagedResources that set none.
	DefaultClass = "resources"
	// AllClasses as configured class makes an instance responsible for every ManagedResource.
	AllClasses = "*"
	// BrotliSuffix ends the data keys whose values are compressed with Brotli (MRD-3).
	BrotliSuffix = ".br"
)
