package v1alpha1

// Types of conditions (MRA-6).
const (
	// ResourcesApplied tells whether all objects were applied.
	ResourcesApplied ConditionType = "ResourcesApplied"
	// ResourcesHealthy tells whether all objects are there and healthy.
	ResourcesHealthy ConditionType = "ResourcesHealthy"
	// ResourcesProgressing tells whether an object is still being rolled out.
	ResourcesProgressing ConditionType = "ResourcesProgressing"
)

// Statuses of conditions.
const (
	ConditionTrue        ConditionStatus = "True"
	ConditionFalse       ConditionStatus = "False"
	ConditionUnknown     ConditionStatus = "Unknown"
	ConditionProgressing ConditionStatus = "Progressing"
)

// Reasons of conditions (MRS-5 … MRS-13).
const (
	ReasonConditionInitialized   = "ConditionInitialized"
	ReasonApplySucceeded         = "ApplySucceeded"
	ReasonApplyFailed            = "ApplyFailed"
	ReasonApplyProgressing       = "ApplyProgressing"
	ReasonDecodingFailed         = "DecodingFailed"
	ReasonCannotReadSecret       = "CannotReadSecret"
	ReasonDeletionFailed         = "DeletionFailed"
	ReasonDeletionPending        = "DeletionPending"
	ReasonReleaseOfOrphansFailed = "ReleaseOfOrphanedResourcesFailed"
	ReasonIgnored                = "ManagedResourceIgnored"
	ReasonChecksPending          = "ChecksPending"
	ReasonResourcesHealthy       = "ResourcesHealthy"
	ReasonResourcesRolledOut     = "ResourcesRolledOut"
	ReasonHealthCheckError       = "HealthCheckError"
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
	// AnnotationIgnoreFields on an object in its manifest: JSON pointers of fields that are written at creation, and left alone afterwards.
	AnnotationIgnoreFields = "resources.gardener.cloud/ignore-fields"
	// AnnotationLeaveAloneUntil on a live object or on a ManagedResource, a time in RFC 3339: nothing is repaired there until then.
	AnnotationLeaveAloneUntil = "resources.gardener.cloud/leave-alone-until"
	// AnnotationLeaveAloneFields next to AnnotationLeaveAloneUntil: JSON pointers of the only fields that are left alone.
	AnnotationLeaveAloneFields = "resources.gardener.cloud/leave-alone-fields"
	// AnnotationLeaveAloneReason next to AnnotationLeaveAloneUntil tells people why.
	AnnotationLeaveAloneReason = "resources.gardener.cloud/leave-alone-reason"
	// AnnotationAllowHolds on a ManagedResource, "true" or "false": whether AnnotationLeaveAloneUntil counts on its live objects.
	// Unset means what the configuration says.
	AnnotationAllowHolds = "resources.gardener.cloud/allow-holds"
	// AnnotationFinalizeDeletionAfter on a live object: its finalizers are removed so long after its deletion.
	AnnotationFinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// AnnotationOrigin names the ManagedResource that an object comes from.
	AnnotationOrigin = "resources.gardener.cloud/origin"
	// AnnotationDescription tells humans not to edit the object.
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
	// AnnotationCondemnedAt is when the garbage collector condemned the object, in RFC 3339 with nanoseconds.
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
