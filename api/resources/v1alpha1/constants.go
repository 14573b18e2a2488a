package v1alpha1

// Types of conditions, which resource-manager sets (MRA-6).
const (
	// ResourcesApplied reports whether all objects were applied.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy reports whether all objects exist and are healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing reports whether an object is still being rolled out: False is good.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
	// Ready, Reconciling and Stalled follow from the other conditions, for clients that judge objects by kstatus. They are set if
	// controllers.managedResource.readyCondition is true.
	Ready       ConditionType = "Ready"
	Reconciling ConditionType = "Reconciling"
	Stalled     ConditionType = "Stalled"
)

// Statuses of conditions.
const (
	// ConditionTrue: the type of the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse: the type of the condition does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown: it is not known whether the type holds, as before the first check.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing of ResourcesApplied only: manifests are being applied, or objects that no manifest has are being deleted.
	ConditionProgressing ConditionStatus = "Progressing"
)

// Reasons of conditions (MRS-5 … MRS-13). A health check that fails has a reason of its own, such as DeploymentUnhealthy: the kind, and Unhealthy,
// Missing or Progressing.
const (
	// ReasonConditionInitialized is the reason of each condition before the first run.
	ReasonConditionInitialized = "ConditionInitialized"
	// ReasonApplySucceeded with ResourcesApplied=True: each object matches its manifest.
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonApplyFailed with ResourcesApplied=False: the message names the objects that could not be applied, and the errors.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonApplyProgressing with ResourcesApplied=Progressing: changed manifests are being applied.
	ReasonApplyProgressing = "ApplyProgressing"
	// ReasonDecodingFailed with ResourcesApplied=False: the message names the documents that are no manifests. No object is deleted.
	ReasonDecodingFailed = "DecodingFailed"
	// ReasonCannotReadSecret with ResourcesApplied=False: a Secret of spec.secretRefs is missing or cannot be read. No object is touched.
	ReasonCannotReadSecret = "CannotReadSecret"
	// ReasonDeletionFailed with ResourcesApplied=False: the message names the objects whose deletion was refused.
	ReasonDeletionFailed = "DeletionFailed"
	// ReasonDeletionPending with ResourcesApplied=Progressing: the message names the objects that are still being deleted, and their
	// finalizers. The conditions of health have it while the ManagedResource is being deleted.
	ReasonDeletionPending = "DeletionPending"
	// ReasonDeletionHeld with ResourcesApplied=False: many objects, or those of some kinds, would be deleted because their manifests vanished; the message
	// names them, and the value of AnnotationConfirmDeletion with which the run goes on at once.
	ReasonDeletionHeld = "DeletionHeld"
	// ReasonReleaseOfOrphansFailed with ResourcesApplied=False: an object with AnnotationMode could not be released.
	ReasonReleaseOfOrphansFailed = "ReleaseOfOrphanedResourcesFailed"
	// ReasonIgnored of all three conditions: the ManagedResource has AnnotationIgnore, and nothing is done.
	ReasonIgnored = "ManagedResourceIgnored"
	// ReasonChecksPending with ResourcesHealthy and ResourcesProgressing: the new objects were not checked yet.
	ReasonChecksPending = "ChecksPending"
	// ReasonResourcesHealthy with ResourcesHealthy=True: all objects are healthy.
	ReasonResourcesHealthy = "ResourcesHealthy"
	// ReasonResourcesReady with Ready=True: all objects are applied, healthy and rolled out.
	ReasonResourcesReady = "ResourcesReady"
	// ReasonResourcesRolledOut with ResourcesProgressing=False: all objects are rolled out.
	ReasonResourcesRolledOut = "ResourcesRolledOut"
	// ReasonHealthCheckError with ResourcesHealthy=Unknown or False: an object could not be read or checked; the
	// message has the error.
	ReasonHealthCheckError = "HealthCheckError"
)

// Annotations and labels (contract, managed-resources 1.3).
const (
	// AnnotationIgnore on a ManagedResource or on an object: leave it alone.
	AnnotationIgnore = "resources.gardener.cloud/ignore"
	// AnnotationMode on an object, with the value ModeIgnore: the object is released.
	AnnotationMode = "resources.gardener.cloud/mode"
	// ModeIgnore is the only value of AnnotationMode.
	ModeIgnore = "Ignore"
	// AnnotationSkipHealthCheck on a live object: it counts as healthy and rolled out.
	AnnotationSkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// AnnotationDeleteOnInvalidUpdate on an object: delete and create it again when an update is refused as invalid.
	AnnotationDeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// AnnotationDeletionPropagationOnInvalidUpdate is the propagation policy of that deletion.
	AnnotationDeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// AnnotationKeepObject on a live object: never delete it.
	AnnotationKeepObject = "resources.gardener.cloud/keep-object"
	// AnnotationPreserveReplicas on an object: spec.replicas of the live object is kept.
	AnnotationPreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// AnnotationPreserveResources on an object: the resources of the live containers are kept.
	AnnotationPreserveResources = "resources.gardener.cloud/preserve-resources"
	// AnnotationLeaveAloneUntil on a live object or on a ManagedResource, a time in RFC 3339: nothing is repaired there until then.
	AnnotationLeaveAloneUntil = "resources.gardener.cloud/leave-alone-until"
	// AnnotationLeaveAloneReason next to AnnotationLeaveAloneUntil is the reason, for people.
	AnnotationLeaveAloneReason = "resources.gardener.cloud/leave-alone-reason"
	// AnnotationAllowHolds on a ManagedResource, "true" or "false": whether AnnotationLeaveAloneUntil counts on its live objects.
	// Unset means the value of the configuration.
	AnnotationAllowHolds = "resources.gardener.cloud/allow-holds"
	// AnnotationConfirmDeletion on a ManagedResource confirms a deletion that waits (ReasonDeletionHeld), by the checksum of its objects. resource-manager
	// sets it when the wait is over, and removes it when nothing is to be deleted.
	AnnotationConfirmDeletion = "resources.gardener.cloud/confirm-deletion"
	// AnnotationFinalizeDeletionAfter on a live object: its finalizers are removed so long after its deletion.
	AnnotationFinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// AnnotationOrigin names the ManagedResource that an object comes from.
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
	// AnnotationCondemnedAs is a digest of the metadata that the object had then. A mark has no effect once the object has changed.
	AnnotationCondemnedAs = "resources.gardener.cloud/condemned-as"
	// AnnotationReferencePrefix starts the annotations that keep garbage-collectable objects.
	AnnotationReferencePrefix = "reference.resources.gardener.cloud/"
	// AnnotationOperation on a ManagedResource asks for an operation.
	AnnotationOperation = "gardener.cloud/operation"
	// OperationReconcile, OperationMigrate, OperationRestore and OperationWaitForState are the values of AnnotationOperation.
	OperationReconcile    = "reconcile"
	OperationMigrate      = "migrate"
	OperationRestore      = "restore"
	OperationWaitForState = "wait-for-state"

	// FinalizerName is the finalizer of the classes "resources" and "*", and the prefix of all others (MRK-3).
	FinalizerName = "resources.gardener.cloud/gardener-resource-manager"
	// DefaultClass is the class of ManagedResources that name none.
	DefaultClass = "resources"
	// AllClasses configured as class makes an instance responsible for every ManagedResource.
	AllClasses = "*"
	// BrotliSuffix ends the data keys whose values are compressed with Brotli (MRD-3).
	BrotliSuffix = ".br"
)
