package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// ControllerDeployment configures the deployment of an extension.
//
// +kubebuilder:object:root=true
type ControllerDeployment struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Helm               *HelmDeployment             `json:"helm,omitempty"`
	Resources          []partialmeta.NamedResource `json:"resources,omitempty"`
}

// HelmDeployment is a deployment by Helm chart.
type HelmDeployment struct {
	OCIRepository *OCIRepository `json:"ociRepository,omitempty"`
}

// OCIRepository is the place of a chart.
type OCIRepository struct {
	PullSecretRef     *partialmeta.NameReference `json:"pullSecretRef,omitempty"`
	CABundleSecretRef *partialmeta.NameReference `json:"caBundleSecretRef,omitempty"`
}
