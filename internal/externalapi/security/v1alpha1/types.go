package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// CredentialsBinding gives shoots of a namespace credentials.
//
// +kubebuilder:object:root=true
type CredentialsBinding struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	CredentialsRef     partialmeta.Reference `json:"credentialsRef,omitempty"`
	Provider           Provider              `json:"provider,omitempty"`
}

// Provider is the provider that the credentials are for.
type Provider struct {
	Type string `json:"type,omitempty"`
}
