package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// Bootstrap modes of a ManagedSeed.
const (
	BootstrapServiceAccount = "ServiceAccount"
	BootstrapToken          = "BootstrapToken"
)

// ManagedSeed makes a shoot a seed.
//
// +kubebuilder:object:root=true
type ManagedSeed struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               ManagedSeedSpec `json:"spec,omitempty"`
}

// ManagedSeedSpec is the specification of a ManagedSeed.
type ManagedSeedSpec struct {
	Shoot     *partialmeta.NameReference `json:"shoot,omitempty"`
	Gardenlet *GardenletConfig           `json:"gardenlet,omitempty"`
}

// GardenletConfig configures the gardenlet of a ManagedSeed.
type GardenletConfig struct {
	// Config is a GardenletConfiguration.
	Config    *runtime.RawExtension `json:"config,omitempty"`
	Bootstrap *string               `json:"bootstrap,omitempty"`
}

// Gardenlet is a gardenlet that deploys itself.
//
// +kubebuilder:object:root=true
type Gardenlet struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               GardenletSpec `json:"spec,omitempty"`
}

// GardenletSpec is the specification of a Gardenlet.
type GardenletSpec struct {
	Deployment GardenletDeployment `json:"deployment,omitempty"`
	// Config is a GardenletConfiguration.
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// GardenletDeployment configures the deployment of the gardenlet.
type GardenletDeployment struct {
	Helm GardenletHelm `json:"helm,omitempty"`
}

// GardenletHelm is a deployment by Helm chart.
type GardenletHelm struct {
	OCIRepository OCIRepository `json:"ociRepository,omitempty"`
}

// OCIRepository is the place of a chart.
type OCIRepository struct {
	PullSecretRef     *partialmeta.NameReference `json:"pullSecretRef,omitempty"`
	CABundleSecretRef *partialmeta.NameReference `json:"caBundleSecretRef,omitempty"`
}
