// Package kubernetes holds slices of Kubernetes' own kinds, for those of which there are so many that whole objects would cost.
//
// +kubebuilder:object:generate=true
package kubernetes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resources.
var (
	Nodes                      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods                       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Secrets                    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	CertificateSigningRequests = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
)

// Metadata is the part of an object's metadata that is read. Owners are not: each would take thirty times its bytes.
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

// Node is a node.
//
// +kubebuilder:object:root=true
type Node struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
}

// Pod is a Pod.
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

// CertificateSigningRequest is a request for a certificate.
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

// Secret is a Secret.
//
// +kubebuilder:object:root=true
type Secret struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        `json:"metadata,omitempty"`
	Data            map[string][]byte `json:"data,omitempty"`
}
