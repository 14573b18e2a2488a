// Package specs has the fields of extensions.gardener.cloud/v1alpha1 that admission checks, and the names of the
// fields around them, for messages. Nothing is ever written back from it.
//
// A field with the tag `show:"-"` holds content that no message shows.
package specs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "extensions.gardener.cloud", Version: "v1alpha1"}

// DefaultSpec has the fields that all specifications share.
type DefaultSpec struct {
	Type           string                `json:"type"`
	Class          *string               `json:"class"`
	ProviderConfig *runtime.RawExtension `json:"providerConfig"`
}

// SecretReference names a Secret.
type SecretReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// BackupBucket is a bucket for backups.
type BackupBucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BackupBucketSpec `json:"spec"`
}

// BackupBucketSpec is the specification of a BackupBucket.
type BackupBucketSpec struct {
	DefaultSpec `json:",inline"`
	Region      string          `json:"region"`
	SecretRef   SecretReference `json:"secretRef"`
}

// BackupEntry is the place of a control plane's backups in a bucket.
type BackupEntry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BackupEntrySpec `json:"spec"`
}

// BackupEntrySpec is the specification of a BackupEntry.
type BackupEntrySpec struct {
	DefaultSpec                `json:",inline"`
	BackupBucketProviderStatus *runtime.RawExtension `json:"backupBucketProviderStatus"`
	Region                     string                `json:"region"`
	BucketName                 string                `json:"bucketName"`
	SecretRef                  SecretReference       `json:"secretRef"`
}

// Bastion is a host through which nodes are reached.
type Bastion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BastionSpec `json:"spec"`
}

// BastionSpec is the specification of a Bastion.
type BastionSpec struct {
	DefaultSpec `json:",inline"`
	UserData    []byte                 `json:"userData" show:"-"`
	Ingress     []BastionIngressPolicy `json:"ingress"`
}

// BastionIngressPolicy limits the addresses from which a bastion is reached.
type BastionIngressPolicy struct {
	IPBlock IPBlock `json:"ipBlock"`
}

// IPBlock is a range of addresses.
type IPBlock struct {
	CIDR   string   `json:"cidr"`
	Except []string `json:"except"`
}

// ContainerRuntime is a container runtime of some nodes.
type ContainerRuntime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ContainerRuntimeSpec `json:"spec"`
}

// ContainerRuntimeSpec is the specification of a ContainerRuntime.
type ContainerRuntimeSpec struct {
	BinaryPath  string                     `json:"binaryPath"`
	WorkerPool  ContainerRuntimeWorkerPool `json:"workerPool"`
	DefaultSpec `json:",inline"`
}

// ContainerRuntimeWorkerPool selects the nodes.
type ContainerRuntimeWorkerPool struct {
	Name string `json:"name"`
}

// ControlPlane is the provider-specific part of a control plane.
type ControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ControlPlaneSpec `json:"spec"`
}

// ControlPlaneSpec is the specification of a ControlPlane.
type ControlPlaneSpec struct {
	DefaultSpec                  `json:",inline"`
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus"`
	Region                       string                `json:"region"`
	SecretRef                    SecretReference       `json:"secretRef"`
}

// DNSRecord is a DNS record.
type DNSRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              DNSRecordSpec `json:"spec"`
}

// DNSRecordSpec is the specification of a DNSRecord.
type DNSRecordSpec struct {
	DefaultSpec `json:",inline"`
	SecretRef   SecretReference `json:"secretRef"`
	Region      *string         `json:"region"`
	Zone        *string         `json:"zone"`
	Name        string          `json:"name"`
	RecordType  string          `json:"recordType"`
	Values      []string        `json:"values"`
	TTL         *int64          `json:"ttl"`
}

// Extension is a resource of an extension that no other kind covers.
type Extension struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ExtensionSpec `json:"spec"`
}

// ExtensionSpec is the specification of an Extension.
type ExtensionSpec struct {
	DefaultSpec `json:",inline"`
}

// Infrastructure is the infrastructure of a shoot's nodes, such as its networks.
type Infrastructure struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              InfrastructureSpec `json:"spec"`
}

// InfrastructureSpec is the specification of an Infrastructure.
type InfrastructureSpec struct {
	DefaultSpec  `json:",inline"`
	Region       string          `json:"region"`
	SecretRef    SecretReference `json:"secretRef"`
	SSHPublicKey []byte          `json:"sshPublicKey" show:"-"`
}

// Network is the network of Pods and Services.
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              NetworkSpec `json:"spec"`
}

// NetworkSpec is the specification of a Network.
type NetworkSpec struct {
	DefaultSpec `json:",inline"`
	PodCIDR     string   `json:"podCIDR"`
	ServiceCIDR string   `json:"serviceCIDR"`
	IPFamilies  []string `json:"ipFamilies"`
}

// OperatingSystemConfig is the configuration of a node's operating system.
type OperatingSystemConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              OperatingSystemConfigSpec   `json:"spec"`
	Status            OperatingSystemConfigStatus `json:"status"`
}

// OperatingSystemConfigSpec is the specification of an OperatingSystemConfig.
type OperatingSystemConfigSpec struct {
	CRIConfig   *CRIConfig `json:"criConfig"`
	DefaultSpec `json:",inline"`
	Purpose     string `json:"purpose"`
	Units       []Unit `json:"units"`
	Files       []File `json:"files"`
}

// OperatingSystemConfigStatus has the units and files that extensions add.
type OperatingSystemConfigStatus struct {
	ExtensionUnits []Unit `json:"extensionUnits"`
	ExtensionFiles []File `json:"extensionFiles"`
}

// CRIConfig configures the container runtime.
type CRIConfig struct {
	Name         string            `json:"name"`
	CgroupDriver *string           `json:"cgroupDriver"`
	Containerd   *ContainerdConfig `json:"containerd"`
}

// ContainerdConfig configures containerd.
type ContainerdConfig struct {
	Registries   []RegistryConfig `json:"registries"`
	SandboxImage string           `json:"sandboxImage"`
	Plugins      []PluginConfig   `json:"plugins"`
}

// RegistryConfig configures a registry.
type RegistryConfig struct {
	Upstream string         `json:"upstream"`
	Server   *string        `json:"server" show:"-"`
	Hosts    []RegistryHost `json:"hosts"`
}

// RegistryHost is a mirror.
type RegistryHost struct {
	URL          string   `json:"url" show:"-"`
	Capabilities []string `json:"capabilities"`
	CACerts      []string `json:"caCerts"`
}

// PluginConfig configures a plugin of containerd.
type PluginConfig struct {
	Op     *string               `json:"op"`
	Path   []string              `json:"path"`
	Values *runtime.RawExtension `json:"values"`
}

// Unit is a unit of systemd.
type Unit struct {
	Name      string   `json:"name"`
	Command   *string  `json:"command"`
	Enable    *bool    `json:"enable"`
	Content   *string  `json:"content" show:"-"`
	DropIns   []DropIn `json:"dropIns"`
	FilePaths []string `json:"filePaths"`
}

// DropIn is a part of a unit.
type DropIn struct {
	Name    string `json:"name"`
	Content string `json:"content" show:"-"`
}

// File is a file on a node.
type File struct {
	Path        string      `json:"path"`
	Permissions *uint32     `json:"permissions"`
	Content     FileContent `json:"content"`
	HostName    *string     `json:"hostName"`
}

// FileContent is the content of a file, or its source.
type FileContent struct {
	SecretRef         *FileContentSecretRef `json:"secretRef"`
	Inline            *FileContentInline    `json:"inline"`
	TransmitUnencoded *bool                 `json:"transmitUnencoded"`
	ImageRef          *FileContentImageRef  `json:"imageRef"`
}

// FileContentSecretRef is a key of a Secret.
type FileContentSecretRef struct {
	Name    string `json:"name"`
	DataKey string `json:"dataKey"`
}

// FileContentInline is the content itself.
type FileContentInline struct {
	Encoding string `json:"encoding"`
	Data     string `json:"data" show:"-"`
}

// FileContentImageRef is a file in an image.
type FileContentImageRef struct {
	Image           string `json:"image"`
	FilePathInImage string `json:"filePathInImage"`
}

// SelfHostedShootExposure makes the control plane of a self-hosted shoot reachable.
type SelfHostedShootExposure struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              SelfHostedShootExposureSpec `json:"spec"`
}

// SelfHostedShootExposureSpec is the specification of a SelfHostedShootExposure.
type SelfHostedShootExposureSpec struct {
	DefaultSpec    `json:",inline"`
	CredentialsRef *corev1.ObjectReference `json:"credentialsRef"`
	Port           int32                   `json:"port"`
	Endpoints      []ControlPlaneEndpoint  `json:"endpoints"`
}

// ControlPlaneEndpoint is a node of a control plane.
type ControlPlaneEndpoint struct {
	NodeName  string        `json:"nodeName"`
	Addresses []NodeAddress `json:"addresses"`
}

// NodeAddress is an address of a node.
type NodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Worker has the worker pools of a shoot.
type Worker struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WorkerSpec `json:"spec"`
}

// WorkerSpec is the specification of a Worker.
type WorkerSpec struct {
	DefaultSpec                  `json:",inline"`
	InfrastructureProviderStatus *runtime.RawExtension `json:"infrastructureProviderStatus"`
	Region                       string                `json:"region"`
	SecretRef                    SecretReference       `json:"secretRef"`
	SSHPublicKey                 []byte                `json:"sshPublicKey" show:"-"`
	Pools                        []WorkerPool          `json:"pools"`
}

// WorkerPool is a set of equal nodes.
type WorkerPool struct {
	MachineType  string        `json:"machineType"`
	Maximum      int32         `json:"maximum"`
	MachineImage MachineImage  `json:"machineImage"`
	Minimum      int32         `json:"minimum"`
	Name         string        `json:"name"`
	Zones        []string      `json:"zones"`
	NodeTemplate *NodeTemplate `json:"nodeTemplate"`
	Architecture *string       `json:"architecture"`
}

// MachineImage is an image of an operating system.
type MachineImage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// NodeTemplate describes the future nodes of a pool.
type NodeTemplate struct {
	Capacity map[string]resource.Quantity `json:"capacity"`
}
