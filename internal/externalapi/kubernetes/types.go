// Package kubernetes has the fields that are read of Kubernetes' own kinds, for kinds with many objects.
//
// +kubebuilder:object:generate=true
package kubernetes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resources of these kinds.
var (
	Nodes                      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods                       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Secrets                    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	CertificateSigningRequests = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
)

// Metadata is the part of an object's metadata that is read. It has no owner references: each would take thirty times
// its bytes.
type Metadata struct {
	Namespace       string            `json:"namespace,omitempty"`
	Name            string            `json:"name,omitempty"`
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *Metadata) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, Annotations: m.Annotations}
}

// Node has the metadata of a Node.
//
// +kubebuilder:object:root=true
type Node struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
}

// Pod has the metadata of a Pod, and its Node.
//
// +kubebuilder:object:root=true
type Pod struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
	Spec            PodSpec `json:"spec,omitempty"`
}

// PodSpec is the specification of a Pod.
type PodSpec struct {
	NodeName string `json:"nodeName,omitempty"`
}

// CertificateSigningRequest has the metadata of a certificate signing request, and its user.
//
// +kubebuilder:object:root=true
type CertificateSigningRequest struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
	Spec            CertificateSigningRequestSpec `json:"spec,omitempty"`
}

// CertificateSigningRequestSpec is the specification of a CertificateSigningRequest.
type CertificateSigningRequestSpec struct {
	Username string `json:"username,omitempty"`
}

// Secret has the metadata and the data of a Secret.
//
// +kubebuilder:object:root=true
type Secret struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
	Data            map[string][]byte `json:"data,omitempty"`
}
