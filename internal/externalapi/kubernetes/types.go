// Package kubernetes holds slices of Kubernetes' own kinds, for those of which there are so many that whole objects would cost.
//
// +kubebuilder:object:generate=true
package kubernetes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// Resources.
var (
	Nodes                      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	Pods                       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	Secrets                    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	CertificateSigningRequests = schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
)

// Node is a node.
//
// +kubebuilder:object:root=true
type Node struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
}

// Pod is a Pod.
//
// +kubebuilder:object:root=true
type Pod struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               PodSpec `json:"spec,omitempty"`
}

// PodSpec is the specification of a Pod.
type PodSpec struct {
	NodeName string `json:"nodeName,omitempty"`
}

// CertificateSigningRequest is a request for a certificate.
//
// +kubebuilder:object:root=true
type CertificateSigningRequest struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               CertificateSigningRequestSpec `json:"spec,omitempty"`
}

// CertificateSigningRequestSpec is the specification of a CertificateSigningRequest.
type CertificateSigningRequestSpec struct {
	Username string `json:"username,omitempty"`
}

// Secret is a Secret.
//
// +kubebuilder:object:root=true
type Secret struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Data               map[string][]byte `json:"data,omitempty"`
}
