// Package garden is the slice of the garden's kinds that the webhooks of admission-controller read. Nothing is ever written back from it.
//
// Its Shoot is another one than that of core/v1beta1, which the graph is made of. Those come as events, are cut to what makes edges, and are
// forgotten; their metadata is a slice, too. These are kept in a cache of controller-runtime, which wants whole metadata, once somebody
// registers the webhooks. In one type each would decode and keep what only the other one reads.
//
// +kubebuilder:object:generate=true
package garden

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-project/espalier/internal/externalapi/meta"
)

// Groups and versions.
var (
	Core     = schema.GroupVersion{Group: "core.gardener.cloud", Version: "v1beta1"}
	Security = schema.GroupVersion{Group: "security.gardener.cloud", Version: "v1alpha1"}
)

// AddToScheme registers the slices as what they are slices of.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Core, &Shoot{}, &ShootList{}, &SecretBinding{}, &SecretBindingList{})
	scheme.AddKnownTypes(Security, &CredentialsBinding{}, &CredentialsBindingList{})
	metav1.AddToGroupVersion(scheme, Core)
	metav1.AddToGroupVersion(scheme, Security)
	return nil
}

// Shoot is a cluster of a user.
//
// +kubebuilder:object:root=true
type Shoot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShootSpec   `json:"spec,omitempty"`
	Status            ShootStatus `json:"status,omitempty"`
}

// ShootList is a list of Shoots.
//
// +kubebuilder:object:root=true
type ShootList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shoot `json:"items"`
}

// ShootSpec is what is wanted.
type ShootSpec struct {
	Kubernetes Kubernetes `json:"kubernetes,omitempty"`
}

// Kubernetes is the configuration of Kubernetes.
type Kubernetes struct {
	Version       string         `json:"version,omitempty"`
	KubeAPIServer *KubeAPIServer `json:"kubeAPIServer,omitempty"`
}

// KubeAPIServer is the configuration of the API server.
type KubeAPIServer struct {
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty"`
	AuditConfig      *AuditConfig      `json:"auditConfig,omitempty"`
	// EnableAnonymousAuthentication is the older way to say what an authentication configuration says.
	EnableAnonymousAuthentication *bool                     `json:"enableAnonymousAuthentication,omitempty"`
	ServiceAccountConfig          *ServiceAccountConfig     `json:"serviceAccountConfig,omitempty"`
	StructuredAuthentication      *StructuredAuthentication `json:"structuredAuthentication,omitempty"`
	StructuredAuthorization       *StructuredAuthorization  `json:"structuredAuthorization,omitempty"`
}

// AdmissionPlugin is a plugin of the API server.
type AdmissionPlugin struct {
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty"`
}

// AuditConfig is the configuration of audit logs.
type AuditConfig struct {
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty"`
}

// AuditPolicy is what is audited.
type AuditPolicy struct {
	ConfigMapRef *meta.NameReference `json:"configMapRef,omitempty"`
}

// ServiceAccountConfig is about the tokens of ServiceAccounts.
type ServiceAccountConfig struct {
	Issuer          *string  `json:"issuer,omitempty"`
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty"`
}

// StructuredAuthentication is the authentication configuration.
type StructuredAuthentication struct {
	ConfigMapName string `json:"configMapName,omitempty"`
}

// StructuredAuthorization is the authorization configuration.
type StructuredAuthorization struct {
	ConfigMapName string                    `json:"configMapName,omitempty"`
	Kubeconfigs   []AuthorizationKubeconfig `json:"kubeconfigs,omitempty"`
}

// AuthorizationKubeconfig is the kubeconfig of an authorizer.
type AuthorizationKubeconfig struct {
	AuthorizerName string `json:"authorizerName,omitempty"`
	SecretName     string `json:"secretName,omitempty"`
}

// ShootStatus is what is there.
type ShootStatus struct {
	AdvertisedAddresses []AdvertisedAddress `json:"advertisedAddresses,omitempty"`
}

// AdvertisedAddress is where the API server is reached.
type AdvertisedAddress struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// SecretBinding gives shoots of a namespace the credentials in a Secret.
//
// +kubebuilder:object:root=true
type SecretBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	SecretRef         meta.SecretReference `json:"secretRef,omitempty"`
	Provider          *Provider            `json:"provider,omitempty"`
}

// Provider is where shoots run.
type Provider struct {
	// Type may name several, separated by commas.
	Type string `json:"type,omitempty"`
}

// SecretBindingList is a list of SecretBindings.
//
// +kubebuilder:object:root=true
type SecretBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SecretBinding `json:"items"`
}

// CredentialsBinding gives shoots of a namespace credentials of any kind.
//
// +kubebuilder:object:root=true
type CredentialsBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	CredentialsRef    meta.Reference `json:"credentialsRef,omitempty"`
	Provider          Provider       `json:"provider,omitempty"`
}

// CredentialsBindingList is a list of CredentialsBindings.
//
// +kubebuilder:object:root=true
type CredentialsBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CredentialsBinding `json:"items"`
}
