package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// Bastion is a host through which nodes of a shoot are reached.
//
// +kubebuilder:object:root=true
type Bastion struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               BastionSpec `json:"spec,omitempty"`
}

// BastionSpec is the specification of a Bastion.
type BastionSpec struct {
	SeedName *string                    `json:"seedName,omitempty"`
	ShootRef *partialmeta.NameReference `json:"shootRef,omitempty"`
}
