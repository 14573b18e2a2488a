package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// BackupBucket is a bucket for backups, of a seed or of a self-hosted shoot.
//
// +kubebuilder:object:root=true
type BackupBucket struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               BackupBucketSpec   `json:"spec,omitempty"`
	Status             BackupBucketStatus `json:"status,omitempty"`
}

// BackupBucketSpec is the specification of a BackupBucket.
type BackupBucketSpec struct {
	SeedName       *string                `json:"seedName,omitempty"`
	CredentialsRef *partialmeta.Reference `json:"credentialsRef,omitempty"`
	// SecretRef is the predecessor of CredentialsRef.
	SecretRef *partialmeta.SecretReference `json:"secretRef,omitempty"`
	ShootRef  *partialmeta.Reference       `json:"shootRef,omitempty"`
}

// BackupBucketStatus is the status of a BackupBucket.
type BackupBucketStatus struct {
	GeneratedSecretRef *partialmeta.SecretReference `json:"generatedSecretRef,omitempty"`
}

// BackupEntry is the place of a shoot's backups in a bucket.
//
// +kubebuilder:object:root=true
type BackupEntry struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               BackupEntrySpec   `json:"spec,omitempty"`
	Status             BackupEntryStatus `json:"status,omitempty"`
}

// BackupEntrySpec is the specification of a BackupEntry.
type BackupEntrySpec struct {
	BucketName string                 `json:"bucketName,omitempty"`
	SeedName   *string                `json:"seedName,omitempty"`
	ShootRef   *partialmeta.Reference `json:"shootRef,omitempty"`
}

// BackupEntryStatus is the status of a BackupEntry.
type BackupEntryStatus struct {
	SeedName *string `json:"seedName,omitempty"`
}

// ControllerInstallation is an extension on a seed.
//
// +kubebuilder:object:root=true
type ControllerInstallation struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               ControllerInstallationSpec `json:"spec,omitempty"`
}

// ControllerInstallationSpec is the specification of a ControllerInstallation.
type ControllerInstallationSpec struct {
	RegistrationRef partialmeta.NameReference  `json:"registrationRef,omitempty"`
	SeedRef         *partialmeta.NameReference `json:"seedRef,omitempty"`
	DeploymentRef   *partialmeta.NameReference `json:"deploymentRef,omitempty"`
	ShootRef        *partialmeta.Reference     `json:"shootRef,omitempty"`
}

// Project groups shoots in a namespace.
//
// +kubebuilder:object:root=true
type Project struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               ProjectSpec `json:"spec,omitempty"`
}

// ProjectSpec is the specification of a Project.
type ProjectSpec struct {
	Namespace *string `json:"namespace,omitempty"`
}

// SecretBinding gives shoots of a namespace the credentials in a Secret.
//
// +kubebuilder:object:root=true
type SecretBinding struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	SecretRef          partialmeta.SecretReference `json:"secretRef,omitempty"`
	Provider           *BindingProvider            `json:"provider,omitempty"`
}

// BindingProvider is the provider that the credentials of a SecretBinding are for.
type BindingProvider struct {
	// Type may name several, separated by commas.
	Type string `json:"type,omitempty"`
}

// Seed is a cluster that hosts control planes.
//
// +kubebuilder:object:root=true
type Seed struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               SeedSpec   `json:"spec,omitempty"`
	Status             SeedStatus `json:"status,omitempty"`
}

// SeedSpec is the specification of a Seed.
type SeedSpec struct {
	Backup    *SeedBackup                 `json:"backup,omitempty"`
	DNS       SeedDNS                     `json:"dns,omitempty"`
	Resources []partialmeta.NamedResource `json:"resources,omitempty"`
	// SecretRef referred to a kubeconfig of the seed in old releases.
	SecretRef *partialmeta.SecretReference `json:"secretRef,omitempty"`
}

// SeedBackup configures the backups of a seed or of a self-hosted shoot.
type SeedBackup struct {
	CredentialsRef *partialmeta.Reference `json:"credentialsRef,omitempty"`
	// SecretRef is the predecessor of CredentialsRef.
	SecretRef *partialmeta.SecretReference `json:"secretRef,omitempty"`
}

// SeedDNS configures the DNS of a seed.
type SeedDNS struct {
	Provider *SeedDNSProvider  `json:"provider,omitempty"`
	Internal *SeedDNSProvider  `json:"internal,omitempty"`
	Defaults []SeedDNSProvider `json:"defaults,omitempty"`
}

// SeedDNSProvider is an account with a DNS provider.
type SeedDNSProvider struct {
	CredentialsRef *partialmeta.Reference `json:"credentialsRef,omitempty"`
	// SecretRef is the predecessor of CredentialsRef.
	SecretRef *partialmeta.SecretReference `json:"secretRef,omitempty"`
}

// SeedStatus is the status of a Seed.
type SeedStatus struct {
	ClientCertificateExpirationTimestamp *metav1.Time `json:"clientCertificateExpirationTimestamp,omitempty"`
}

// Shoot is a cluster of a user.
//
// +kubebuilder:object:root=true
type Shoot struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               ShootSpec   `json:"spec,omitempty"`
	Status             ShootStatus `json:"status,omitempty"`
}

// ShootSpec is the specification of a Shoot.
type ShootSpec struct {
	SeedName               *string                     `json:"seedName,omitempty"`
	SecretBindingName      *string                     `json:"secretBindingName,omitempty"`
	CredentialsBindingName *string                     `json:"credentialsBindingName,omitempty"`
	CloudProfileName       *string                     `json:"cloudProfileName,omitempty"`
	CloudProfile           *CloudProfileReference      `json:"cloudProfile,omitempty"`
	ExposureClassName      *string                     `json:"exposureClassName,omitempty"`
	Resources              []partialmeta.NamedResource `json:"resources,omitempty"`
	DNS                    *ShootDNS                   `json:"dns,omitempty"`
	Kubernetes             ShootKubernetes             `json:"kubernetes,omitempty"`
	Provider               ShootProvider               `json:"provider,omitempty"`
}

// ShootProvider is the infrastructure of a shoot.
type ShootProvider struct {
	Workers []ShootWorker `json:"workers,omitempty"`
}

// ShootWorker is a pool of machines.
type ShootWorker struct {
	ControlPlane *ShootControlPlane `json:"controlPlane,omitempty"`
}

// ShootControlPlane is set for a pool that runs the control plane of a self-hosted shoot.
type ShootControlPlane struct {
	Backup *SeedBackup `json:"backup,omitempty"`
}

// CloudProfileReference names a CloudProfile or a NamespacedCloudProfile.
type CloudProfileReference struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// ShootDNS configures the DNS of a shoot.
type ShootDNS struct {
	Providers []ShootDNSProvider `json:"providers,omitempty"`
}

// ShootDNSProvider is an account with a DNS provider.
type ShootDNSProvider struct {
	CredentialsRef *partialmeta.Reference `json:"credentialsRef,omitempty"`
	// SecretName is the predecessor of CredentialsRef.
	SecretName *string `json:"secretName,omitempty"`
}

// ShootKubernetes is the configuration of Kubernetes.
type ShootKubernetes struct {
	Version       string         `json:"version,omitempty"`
	KubeAPIServer *KubeAPIServer `json:"kubeAPIServer,omitempty"`
}

// KubeAPIServer is the configuration of the API server.
type KubeAPIServer struct {
	AdmissionPlugins []AdmissionPlugin `json:"admissionPlugins,omitempty"`
	AuditConfig      *AuditConfig      `json:"auditConfig,omitempty"`
	// EnableAnonymousAuthentication is the older form of the anonymous part of an authentication configuration.
	EnableAnonymousAuthentication *bool                     `json:"enableAnonymousAuthentication,omitempty"`
	ServiceAccountConfig          *ServiceAccountConfig     `json:"serviceAccountConfig,omitempty"`
	StructuredAuthentication      *StructuredAuthentication `json:"structuredAuthentication,omitempty"`
	StructuredAuthorization       *StructuredAuthorization  `json:"structuredAuthorization,omitempty"`
}

// AdmissionPlugin is a plugin of the API server.
type AdmissionPlugin struct {
	KubeconfigSecretName *string `json:"kubeconfigSecretName,omitempty"`
}

// ServiceAccountConfig is the configuration of tokens of ServiceAccounts.
type ServiceAccountConfig struct {
	Issuer          *string  `json:"issuer,omitempty"`
	AcceptedIssuers []string `json:"acceptedIssuers,omitempty"`
}

// AuditConfig is the configuration of audit logs.
type AuditConfig struct {
	AuditPolicy *AuditPolicy `json:"auditPolicy,omitempty"`
}

// AuditPolicy refers to the audit policy of kube-apiserver.
type AuditPolicy struct {
	ConfigMapRef *partialmeta.NameReference `json:"configMapRef,omitempty"`
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

// ShootStatus is the status of a Shoot.
type ShootStatus struct {
	SeedName            *string             `json:"seedName,omitempty"`
	LastOperation       *LastOperation      `json:"lastOperation,omitempty"`
	AdvertisedAddresses []AdvertisedAddress `json:"advertisedAddresses,omitempty"`
}

// AdvertisedAddress is an address of the API server or of its issuer.
type AdvertisedAddress struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
}

// LastOperation is the last operation on a Shoot.
type LastOperation struct {
	Type  string `json:"type,omitempty"`
	State string `json:"state,omitempty"`
}
