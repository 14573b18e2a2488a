package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

const (
	// APIVersion is the apiVersion of configuration files.
	APIVersion = "admissioncontroller.config.gardener.cloud/v1alpha1"
	// Kind is the kind of configuration files.
	Kind = "AdmissionControllerConfiguration"
	// WildcardAll stands for all API groups, versions or resources, or for every name of a subject.
	WildcardAll = "*"
)

// AdmissionControllerConfiguration is the configuration file of admission-controller (contract, operations 1.10).
type AdmissionControllerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// GardenClientConnection is the connection to the garden cluster.
	// +optional
	GardenClientConnection GardenClientConnection `json:"gardenClientConnection,omitempty"`
	// LogLevel is debug, info or error. Default info.
	// +kubebuilder:validation:Enum=debug;info;error
	// +optional
	LogLevel string `json:"logLevel,omitempty"`
	// LogFormat is json or text. Default json.
	// +kubebuilder:validation:Enum=json;text
	// +optional
	LogFormat string `json:"logFormat,omitempty"`
	// Server configures the ports.
	// +optional
	Server ServerConfiguration `json:"server,omitempty"`
	// Debugging enables profiling and debug endpoints.
	// +optional
	Debugging *shared.Debugging `json:"debugging,omitempty"`
}

// GardenClientConnection configures the connection to the garden cluster.
type GardenClientConnection struct {
	// Kubeconfig is the path of a kubeconfig file; KUBECONFIG in the environment comes before it. Empty means the
	// ServiceAccount of the Pod.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// AcceptContentTypes is the Accept header of requests for built-in kinds. Default: the client library's.
	// +optional
	AcceptContentTypes string `json:"acceptContentTypes,omitempty"`
	// ContentType is the type of sent bodies. Default: the client library's.
	// +optional
	ContentType string `json:"contentType,omitempty"`
	// QPS limits requests per second; negative means no limit. Default 50.
	// +optional
	QPS float32 `json:"qps,omitempty"`
	// Burst limits the requests that may exceed QPS for a moment. Default 100.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Burst int32 `json:"burst,omitempty"`
}

// Connection returns the connection in the form that all executables share.
func (c *GardenClientConnection) Connection() *shared.ClientConnection {
	return &shared.ClientConnection{
		Kubeconfig: c.Kubeconfig, AcceptContentTypes: c.AcceptContentTypes, ContentType: c.ContentType, QPS: c.QPS, Burst: c.Burst,
	}
}

// ServerConfiguration configures the ports.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server of the webhooks. Default port 2721.
	// +optional
	Webhooks shared.HTTPSServer `json:"webhooks,omitempty"`
	// HealthProbes is the HTTP server of /healthz and /readyz. Default port 2722.
	// +optional
	HealthProbes *shared.Server `json:"healthProbes,omitempty"`
	// Metrics is the HTTP server of /metrics. Default port 2723.
	// +optional
	Metrics *shared.Server `json:"metrics,omitempty"`
	// ResourceAdmissionConfiguration configures limits for the size and the number of objects.
	// +optional
	ResourceAdmissionConfiguration *ResourceAdmissionConfiguration `json:"resourceAdmissionConfiguration,omitempty"`
	// ProviderSecretLabels configures the labels of Secrets with the credentials of providers.
	// +optional
	ProviderSecretLabels ProviderSecretLabelsConfiguration `json:"providerSecretLabels,omitempty"`
	// EnableDebugHandlers serves the debug page of the graph on the webhooks' port, without authentication. Default
	// false.
	// +optional
	EnableDebugHandlers *bool `json:"enableDebugHandlers,omitempty"`
	// SeedAuthorizer configures the rights of seeds.
	// +optional
	SeedAuthorizer SeedAuthorizerConfiguration `json:"seedAuthorizer,omitempty"`
	// OnlyReport lists the webhooks (features) that allow requests that they would refuse, and only report them: by a
	// warning, an audit annotation, a metric and a log line. Webhooks that change objects have no such mode. Default
	// none.
	// +optional
	OnlyReport []string `json:"onlyReport,omitempty"`
}

// ProviderSecretLabelsConfiguration configures the labels of Secrets with the credentials of providers.
type ProviderSecretLabelsConfiguration struct {
	// RemoveUnreferenced removes the labels from Secrets that no binding refers to any more, when the Secrets are
	// written. Default false.
	// +optional
	RemoveUnreferenced bool `json:"removeUnreferenced,omitempty"`
}

// ReadScope limits what seeds may read of Bastions, ControllerInstallations, Gardenlets, ManagedSeeds, Seeds and Shoots.
type ReadScope string

// References decides which references in objects of seeds are checked.
type References string

// WriteScope limits the writes of seeds to objects that others refer to.
type WriteScope string

const (
	// ReferencesTrusted lets gardenlets refer to any Secret when they register themselves, and thereby get access to
	// it.
	ReferencesTrusted References = "Trusted"
	// ReferencesChecked lets seeds refer only to objects that they already have access to.
	ReferencesChecked References = "Checked"
	// ReadScopeAll lets seeds read all objects of these kinds.
	ReadScopeAll ReadScope = "All"
	// ReadScopeRelated lets seeds read only objects that are related to them, and list them only with a selector.
	ReadScopeRelated ReadScope = "Related"
	// WriteScopeReferenced lets seeds write every object that is related to them.
	WriteScopeReferenced WriteScope = "Referenced"
	// WriteScopeOwned lets seeds write only objects that their clients manage, and not, for example, credentials that
	// a user made.
	WriteScopeOwned WriteScope = "Owned"
)

// SeedAuthorizerConfiguration configures the rights of seeds, and the greatest age of the graph.
type SeedAuthorizerConfiguration struct {
	// ReadScope is All (seeds read all Bastions, ControllerInstallations, Gardenlets, ManagedSeeds, Seeds and Shoots)
	// or Related (seeds read only those that are related to them; lists need a selector). Default All.
	// +kubebuilder:validation:Enum=All;Related
	// +optional
	ReadScope ReadScope `json:"readScope,omitempty"`
	// WriteScope is Referenced (seeds write all ConfigMaps, Secrets and InternalSecrets that are related to them)
	// or Owned (only those that their clients manage). Default Referenced.
	// +kubebuilder:validation:Enum=Referenced;Owned
	// +optional
	WriteScope WriteScope `json:"writeScope,omitempty"`
	// References is Trusted (a gardenlet may read and write the objects that its Seed or new Gardenlet refers to when
	// it registers itself) or Checked (SeedRestriction refuses such references to objects that the seed has no access
	// to). Other references of seeds are always checked. Default Trusted.
	// +kubebuilder:validation:Enum=Trusted;Checked
	// +optional
	References References `json:"references,omitempty"`
	// MaxStaleness is the longest time that a watch may be silent before the instance is not ready; at least 5m, or 0
	// for no limit. Default 10m.
	// +optional
	MaxStaleness *metav1.Duration `json:"maxStaleness,omitempty"`
	// Shadow is a second policy that decides each request without effect: decisions that differ are counted by rule
	// and class of client, and a sample is logged. Unset keys have the values of the policy in effect. Default none.
	// +optional
	Shadow *SeedAuthorizerShadow `json:"shadow,omitempty"`
}

// SeedAuthorizerShadow is a policy that decides without any effect. Unset fields have the values of the policy in
// effect.
type SeedAuthorizerShadow struct {
	// ReadScope is the value for the shadow policy.
	// +kubebuilder:validation:Enum=All;Related
	// +optional
	ReadScope ReadScope `json:"readScope,omitempty"`
	// WriteScope is the value for the shadow policy.
	// +kubebuilder:validation:Enum=Referenced;Owned
	// +optional
	WriteScope WriteScope `json:"writeScope,omitempty"`
	// References is the value for the shadow policy.
	// +kubebuilder:validation:Enum=Trusted;Checked
	// +optional
	References References `json:"references,omitempty"`
}

// ResourceAdmissionConfiguration limits the size and the number of objects.
type ResourceAdmissionConfiguration struct {
	// Limits are the limits of resources. The first one that matches a resource applies; * stands for all.
	// +optional
	Limits []ResourceLimit `json:"limits,omitempty"`
	// UnrestrictedSubjects are users, groups and ServiceAccounts without limits.
	// +optional
	UnrestrictedSubjects []rbacv1.Subject `json:"unrestrictedSubjects,omitempty"`
	// OperationMode is block (refuse) or log (admit, and log). Default block.
	// +kubebuilder:validation:Enum=block;log
	// +optional
	OperationMode *string `json:"operationMode,omitempty"`
}

// ResourceLimit limits resources; * stands for all.
type ResourceLimit struct {
	// APIGroups of the resources, "" for the core group. Required.
	// +optional
	APIGroups []string `json:"apiGroups,omitempty"`
	// APIVersions of the resources. Required.
	// +optional
	APIVersions []string `json:"apiVersions,omitempty"`
	// Resources are the plural names. Required.
	// +optional
	Resources []string `json:"resources,omitempty"`
	// Size is the largest size of an object in bytes as JSON, without status and managed fields. Default: no
	// limit.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Count is the largest number of objects, of cluster-scoped resources only. Default: no limit.
	// +optional
	Count *int64 `json:"count,omitempty"`
}

// Operation modes of resource admission.
const (
	OperationModeBlock = "block"
	OperationModeLog   = "log"
)
