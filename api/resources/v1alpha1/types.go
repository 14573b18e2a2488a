package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedResource describes a set of objects, given as manifests in Secrets, that resource-manager applies to its target
// cluster and repairs there (MRA-1).
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mr
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`,description="The class that says which resource-manager is responsible."
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].status`,description="Whether all objects were applied to the target cluster."
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].status`,description="Whether all objects are healthy."
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].status`,description="Whether some object is still being rolled out."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since the ManagedResource was created."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What keeps the ManagedResource from being ready, if controllers.managedResource.readyCondition is true."
// +kubebuilder:printcolumn:name="Apply Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesApplied")].message`,description="Which objects could not be applied, and why."
// +kubebuilder:printcolumn:name="Health Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesHealthy")].message`,description="Which objects are not healthy, and why."
// +kubebuilder:printcolumn:name="Progress Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcesProgressing")].message`,description="Which objects are being rolled out."
// +kubebuilder:printcolumn:name="Checksum",type=string,priority=1,JSONPath=`.status.secretsDataChecksum`,description="The checksum of the manifests that were applied last."
type ManagedResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the manifests that are applied to the target cluster, and configures their application. Its author
	// sets it.
	Spec ManagedResourceSpec `json:"spec,omitempty"`
	// Status reports the applied objects and their conditions. Only resource-manager sets it.
	Status ManagedResourceStatus `json:"status,omitempty"`
}

// ManagedResourceList is a list of ManagedResources.
//
// +kubebuilder:object:root=true
type ManagedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ManagedResources.
	Items []ManagedResource `json:"items"`
}

// ManagedResourceSpec selects the manifests that are applied to the target cluster (MRA-4).
type ManagedResourceSpec struct {
	// Class names the class of resource-manager that is responsible. Unset or empty means the default class,
	// "resources".
	// +optional
	Class *string `json:"class,omitempty"`
	// SecretRefs name the Secrets, in the ManagedResource's own namespace, whose data values are the manifests: YAML documents or JSON
	// objects, compressed with Brotli where the key ends in .br. At most 1,000 Secrets and 16 MiB.
	SecretRefs []corev1.LocalObjectReference `json:"secretRefs"`
	// InjectLabels are put on every managed object and on its pod template, over labels of the manifest. Unset means none.
	// +optional
	InjectLabels map[string]string `json:"injectLabels,omitempty"`
	// ForceOverwriteLabels removes labels that other clients put on managed objects. Unset means false.
	// +optional
	ForceOverwriteLabels *bool `json:"forceOverwriteLabels,omitempty"`
	// ForceOverwriteAnnotations removes annotations that other clients put on managed objects. Unset means false.
	// +optional
	ForceOverwriteAnnotations *bool `json:"forceOverwriteAnnotations,omitempty"`
	// KeepObjects leaves the managed objects in the target cluster when the ManagedResource is deleted or handed over
	// to another class. Unset means false.
	// +optional
	KeepObjects *bool `json:"keepObjects,omitempty"`
	// Equivalences lists sets of kinds that name the same objects: an object that moves between them is not deleted.
	// Unset means only those that are built into resource-manager.
	// +optional
	Equivalences [][]metav1.GroupKind `json:"equivalences,omitempty"`
	// DeletePersistentVolumeClaims deletes the claims of a managed StatefulSet together with it. Unset means false.
	// +optional
	DeletePersistentVolumeClaims *bool `json:"deletePersistentVolumeClaims,omitempty"`
}

// ManagedResourceStatus has the applied objects and their conditions (MRA-6).
type ManagedResourceStatus struct {
	// Conditions are ResourcesApplied, ResourcesHealthy and ResourcesProgressing, and Ready, Reconciling and Stalled if they are configured;
	// conditions of other types are left alone.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the last generation that was reconciled to the end.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Resources is the inventory: every object that is, or may be, in the target cluster because of this ManagedResource.
	// +optional
	Resources []ObjectReference `json:"resources,omitempty"`
	// SecretsDataChecksum is the hex SHA-256 of the manifests that were applied last.
	// +optional
	SecretsDataChecksum *string `json:"secretsDataChecksum,omitempty"`
}

// ObjectReference is an entry of the inventory (MRA-8).
//
// +structType=atomic
type ObjectReference struct {
	corev1.ObjectReference `json:",inline"`

	// Labels are the desired labels at the time when the object was last applied.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the desired annotations at the time when the object was last applied.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Condition is one aspect of the state of a ManagedResource (MRA-7).
type Condition struct {
	// Type of the condition.
	Type ConditionType `json:"type"`
	// Status is True, False, Unknown or Progressing.
	Status ConditionStatus `json:"status"`
	// LastTransitionTime is the time of the last change of the status.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// LastUpdateTime is the time of the last change of the reason or the message.
	LastUpdateTime metav1.Time `json:"lastUpdateTime"`
	// Reason is a stable word for the cause of the status, for programs.
	Reason string `json:"reason"`
	// Message is for people and names the objects in question, the first twenty of many. It has 16 KiB at most and no content of Secrets.
	Message string `json:"message"`
	// Codes are well-known error codes; resource-manager sets none.
	// +optional
	Codes []ErrorCode `json:"codes,omitempty"`
}

// ConditionType is the type of a Condition.
type ConditionType string

// ConditionStatus is the status of a Condition.
type ConditionStatus string

// ErrorCode is a well-known code for the cause of an error.
type ErrorCode string
