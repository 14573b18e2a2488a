package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

const (
	// APIVersion is the apiVersion of configuration files.
	APIVersion = "resourcemanager.config.gardener.cloud/v1alpha1"
	// Kind is the kind of configuration files.
	Kind = "ResourceManagerConfiguration"
	// DefaultResourceClass is the class of an instance whose configuration sets none.
	DefaultResourceClass = "resources"
	// ClusterIDFromCluster is the clusterID that is replaced by the ID in the ConfigMap kube-system/cluster-identity,
	// which must exist.
	ClusterIDFromCluster = "<cluster>"
	// ClusterIDDefault is the clusterID that is replaced by the ID in the ConfigMap kube-system/cluster-identity, or
	// by nothing if that does not exist.
	ClusterIDDefault = "<default>"
)

// ResourceManagerConfiguration is the configuration file of resource-manager (contract, operations 1.2).
type ResourceManagerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// SourceClientConnection is the connection to the cluster with the ManagedResources and Secrets.
	// +optional
	SourceClientConnection shared.ClientConnection `json:"sourceClientConnection,omitempty"`
	// TargetClientConnection is the connection to the cluster with the managed objects.
	// +optional
	TargetClientConnection *shared.ClientConnection `json:"targetClientConnection,omitempty"`
	// LeaderElection configures the election among several instances.
	// +optional
	LeaderElection shared.LeaderElection `json:"leaderElection,omitempty"`
	// Server configures the ports.
	// +optional
	Server ServerConfiguration `json:"server,omitempty"`
	// Debugging enables profiling and debug endpoints.
	// +optional
	Debugging *shared.Debugging `json:"debugging,omitempty"`
	// LogLevel is debug, info or error. Default info.
	// +kubebuilder:validation:Enum=debug;info;error
	// +optional
	LogLevel string `json:"logLevel,omitempty"`
	// LogFormat is json or text. Default json.
	// +kubebuilder:validation:Enum=json;text
	// +optional
	LogFormat string `json:"logFormat,omitempty"`
	// Controllers configures the controllers.
	// +optional
	Controllers ControllerConfiguration `json:"controllers,omitempty"`
	// Webhooks configures the webhooks.
	// +optional
	Webhooks WebhookConfiguration `json:"webhooks,omitempty"`
}

// ServerConfiguration configures the ports (contract, operations 1.5).
type ServerConfiguration struct {
	// Webhooks is the HTTPS server of the webhooks. Default port 9449.
	// +optional
	Webhooks shared.HTTPSServer `json:"webhooks,omitempty"`
	// HealthProbes is the HTTP server of /healthz and /readyz. Default port 8081.
	// +optional
	HealthProbes *shared.Server `json:"healthProbes,omitempty"`
	// Metrics is the HTTP server of /metrics. Default port 8080.
	// +optional
	Metrics *shared.Server `json:"metrics,omitempty"`
}

// ControllerConfiguration configures the controllers (contract, operations 1.6).
type ControllerConfiguration struct {
	// ClusterID is the first part of the origin annotation: a literal, empty, or "<cluster>" or "<default>", which
	// read it from the ConfigMap kube-system/cluster-identity of the source.
	// +optional
	ClusterID *string `json:"clusterID,omitempty"`
	// ResourceClass is the class of the served ManagedResources; "*" means every class. Default resources.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`
	// CacheSyncTimeout limits the wait of a controller for its caches at start. Default 2m.
	// +optional
	CacheSyncTimeout *metav1.Duration `json:"cacheSyncTimeout,omitempty"`
	// GarbageCollector configures the garbage collector.
	// +optional
	GarbageCollector GarbageCollectorControllerConfig `json:"garbageCollector,omitempty"`
	// Health configures both health controllers.
	// +optional
	Health HealthControllerConfig `json:"health,omitempty"`
	// CSRApprover configures the approver of certificate signing requests.
	// +optional
	CSRApprover CSRApproverControllerConfig `json:"csrApprover,omitempty"`
	// ManagedResource configures the controller that applies ManagedResources.
	// +optional
	ManagedResource ManagedResourceControllerConfig `json:"managedResource,omitempty"`
	// IstioClusterConfiguration configures the istio-cluster-configuration controller.
	// +optional
	IstioClusterConfiguration SwitchableControllerConfig `json:"istioClusterConfiguration,omitempty"`
	// NetworkPolicy configures the controller that derives NetworkPolicies from Services.
	// +optional
	NetworkPolicy NetworkPolicyControllerConfig `json:"networkPolicy,omitempty"`
	// NodeCriticalComponents configures the controller that untaints Nodes.
	// +optional
	NodeCriticalComponents NodeCriticalComponentsControllerConfig `json:"nodeCriticalComponents,omitempty"`
	// NodeAgentReconciliationDelay configures the controller that spreads the agents' reconciliations.
	// +optional
	NodeAgentReconciliationDelay NodeAgentReconciliationDelayControllerConfig `json:"nodeAgentReconciliationDelay,omitempty"`
	// TokenInvalidator configures the controller that invalidates static ServiceAccount tokens.
	// +optional
	TokenInvalidator SwitchableControllerConfig `json:"tokenInvalidator,omitempty"`
	// TokenRequestor configures the controller that requests ServiceAccount tokens.
	// +optional
	TokenRequestor TokenRequestorControllerConfig `json:"tokenRequestor,omitempty"`
}

// SwitchableControllerConfig is the configuration of a controller that can be switched on.
type SwitchableControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of workers. Default 5 when enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
}

// GarbageCollectorControllerConfig configures the garbage collector.
type GarbageCollectorControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// SyncPeriod is the time between two collections, at least 15s. Default 1h when enabled.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// MinimumAge is the age from which an object is collected. Default 10m when enabled.
	// +optional
	MinimumAge *metav1.Duration `json:"minimumAge,omitempty"`
	// ScanPodSpecs also keeps objects that the spec of a Pod or Pod template refers to without a reference
	// annotation. Default true when enabled.
	// +optional
	ScanPodSpecs *bool `json:"scanPodSpecs,omitempty"`
}

// TokenRequestorControllerConfig configures the controller that requests ServiceAccount tokens.
type TokenRequestorControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of workers. Default 5 when enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// Class is the label resources.gardener.cloud/class of the served Secrets; empty means all. Default empty, and
	// shoot under profile gardener.
	// +optional
	Class *string `json:"class,omitempty"`
	// ReviewTokens sends existing tokens to the target for review, and renews those that it rejects. Default true
	// when enabled.
	// +optional
	ReviewTokens *bool `json:"reviewTokens,omitempty"`
}

// HealthControllerConfig configures both health controllers.
type HealthControllerConfig struct {
	// ConcurrentSyncs is the number of workers per controller. Default 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time between two checks of a ManagedResource without events, at least 15s. Default 1m.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// CustomResources checks other custom resources, too, by observedGeneration and the conditions Ready,
	// Reconciling and Stalled. Default false.
	// +optional
	CustomResources *bool `json:"customResources,omitempty"`
}

// CSRApproverControllerConfig configures the approver of certificate signing requests.
type CSRApproverControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of workers. Default 1 when enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// MachineNamespace is the namespace of the Machines in the source cluster. Default none.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// StrictBootstrap refuses a bootstrap token once the Machine has the label node; otherwise it is refused once
	// that Node exists. Default false.
	// +optional
	StrictBootstrap *bool `json:"strictBootstrap,omitempty"`
	// BootstrapByKubelet lets kubelets request the first certificate of a node agent, too: any kubelet can then take
	// the identity of a machine without a Node. Default false.
	// +optional
	BootstrapByKubelet *bool `json:"bootstrapByKubelet,omitempty"`
	// NodeAgentServiceAccount lets the ServiceAccount kube-system/gardener-node-agent request certificates of
	// machines with Nodes. Default true.
	// +optional
	NodeAgentServiceAccount *bool `json:"nodeAgentServiceAccount,omitempty"`
}

// ManagedResourceControllerConfig configures the controller that applies ManagedResources.
type ManagedResourceControllerConfig struct {
	// ConcurrentSyncs is the number of workers. Default 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time between two runs of a ManagedResource without events, and the time limit of a run; at
	// least 15s. Default 1m.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// AlwaysUpdate updates every object in every sync period, changed or not. Default false.
	// +optional
	AlwaysUpdate *bool `json:"alwaysUpdate,omitempty"`
	// AlwaysUpdateScope limits alwaysUpdate to All objects, or to Unwatched ones: those without a watch that
	// reports drift. Default All.
	// +optional
	// +kubebuilder:validation:Enum=All;Unwatched
	AlwaysUpdateScope AlwaysUpdateScope `json:"alwaysUpdateScope,omitempty"`
	// ManagedByLabelValue is the value of the label resources.gardener.cloud/managed-by. Default gardener.
	// +optional
	ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	// ApplyWhileDeletionPending applies new objects while old ones are still being deleted. Default false.
	// +optional
	ApplyWhileDeletionPending *bool `json:"applyWhileDeletionPending,omitempty"`
	// DeleteForeignObjects deletes objects of the inventory even if their origin annotation names another
	// ManagedResource. Default false.
	// +optional
	DeleteForeignObjects *bool `json:"deleteForeignObjects,omitempty"`
	// DriftRepairDelay is the time until another client's change or deletion is repaired; an Event reports it at
	// once. Default 0.
	// +optional
	DriftRepairDelay *metav1.Duration `json:"driftRepairDelay,omitempty"`
	// AuditPeriod is the time between two metadata lists of each kind, which find changes that no watch reported;
	// 0 means none. Default 24h.
	// +optional
	AuditPeriod *metav1.Duration `json:"auditPeriod,omitempty"`
	// AllowHolds exempts objects of the target with the annotation resources.gardener.cloud/leave-alone-until from
	// repair; the annotation resources.gardener.cloud/allow-holds of their ManagedResource overrides it. Default:
	// true if the target is the source, else false.
	// +optional
	AllowHolds *bool `json:"allowHolds,omitempty"`
	// ReadyCondition adds the conditions Ready, Reconciling and Stalled for clients with kstatus, such as Flux,
	// Argo CD and Helm. Default true, and false under profile gardener.
	// +optional
	ReadyCondition *bool `json:"readyCondition,omitempty"`
	// MassDeletion configures the brake on deletions that may be an accident.
	// +optional
	MassDeletion MassDeletionConfig `json:"massDeletion"`
}

// MassDeletionConfig configures the brake on deletions that may be an accident, because the manifests vanished: of
// ten or more objects that are at least half of the objects of a ManagedResource, or all objects of one Secret or of
// one key of a Secret; and of any CustomResourceDefinition, Namespace, PersistentVolume or PersistentVolumeClaim.
type MassDeletionConfig struct {
	// Wait is the time for which such a deletion is delayed, so that the manifests can return, unless the annotation
	// resources.gardener.cloud/confirm-deletion confirms it. Default 10m, and 0 under profile gardener: the deletion
	// is only reported.
	// +optional
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// NetworkPolicyControllerConfig configures the controller that derives NetworkPolicies from Services.
type NetworkPolicyControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of workers. Default 5 when enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// NamespaceSelectors select the served namespaces: those that match at least one. Empty means all.
	// +optional
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// IngressControllerSelector configures the Pods of the ingress controller.
	// +optional
	IngressControllerSelector *IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
	// OnlyForExistingPods creates policies only where a Pod with their label exists. Default false.
	// +optional
	OnlyForExistingPods *bool `json:"onlyForExistingPods,omitempty"`
	// DescriptionFormat is the form of selectors in the annotation gardener.cloud/description: Labels (map[k:v])
	// or Selector ({map[k:v] []}, as Gardener v1.150.0-dev (b312835d) writes). Default Labels.
	// +optional
	// +kubebuilder:validation:Enum=Labels;Selector
	DescriptionFormat DescriptionFormat `json:"descriptionFormat,omitempty"`
}

// IngressControllerSelector selects the Pods of the ingress controller.
type IngressControllerSelector struct {
	// Namespace is the namespace of the ingress controller's Pods.
	// +optional
	Namespace string `json:"namespace"`
	// PodSelector selects the ingress controller's Pods.
	// +optional
	PodSelector metav1.LabelSelector `json:"podSelector"`
}

// NodeCriticalComponentsControllerConfig configures the controller that untaints Nodes.
type NodeCriticalComponentsControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ConcurrentSyncs is the number of workers. Default 5 when enabled.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// Backoff is the time between two checks of a Node that is not ready. Default 10s when enabled.
	// +optional
	Backoff *metav1.Duration `json:"backoff,omitempty"`
}

// NodeAgentReconciliationDelayControllerConfig configures the controller that spreads the agents' reconciliations.
type NodeAgentReconciliationDelayControllerConfig struct {
	// Enabled switches the controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// MinDelay is the smallest delay. Default 0s when enabled.
	// +optional
	MinDelay *metav1.Duration `json:"minDelay,omitempty"`
	// MaxDelay is the largest delay. Default 5m when enabled.
	// +optional
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
}

// WebhookConfiguration configures the webhooks (contract, operations 1.7).
type WebhookConfiguration struct {
	// CRDDeletionProtection refuses to delete protected CRDs and extension resources.
	// +optional
	CRDDeletionProtection WebhookSwitch `json:"crdDeletionProtection,omitempty"`
	// EndpointSliceHints sets zone hints in EndpointSlices.
	// +optional
	EndpointSliceHints EndpointSliceHintsWebhookConfig `json:"endpointSliceHints,omitempty"`
	// ExtensionValidation validates extension resources.
	// +optional
	ExtensionValidation WebhookSwitch `json:"extensionValidation,omitempty"`
	// HighAvailabilityConfig spreads components over zones and Nodes.
	// +optional
	HighAvailabilityConfig HighAvailabilityConfigWebhookConfig `json:"highAvailabilityConfig,omitempty"`
	// KubernetesServiceHost sets KUBERNETES_SERVICE_HOST in Pods.
	// +optional
	KubernetesServiceHost KubernetesServiceHostWebhookConfig `json:"kubernetesServiceHost,omitempty"`
	// SystemComponentsConfig places system components on Nodes.
	// +optional
	SystemComponentsConfig SystemComponentsConfigWebhookConfig `json:"systemComponentsConfig,omitempty"`
	// PodKubeAPIServerLoadBalancing sends Pods through the load balancer of the API server.
	// +optional
	PodKubeAPIServerLoadBalancing WebhookSwitch `json:"podKubeAPIServerLoadBalancing,omitempty"`
	// PodSchedulerName sets the scheduler of Pods.
	// +optional
	PodSchedulerName PodSchedulerNameWebhookConfig `json:"podSchedulerName,omitempty"`
	// PodTopologySpreadConstraints adds the Pod template hash to topology spread constraints.
	// +optional
	PodTopologySpreadConstraints WebhookSwitch `json:"podTopologySpreadConstraints,omitempty"`
	// PodZoneAffinity pins Pods to a zone.
	// +optional
	PodZoneAffinity WebhookSwitch `json:"podZoneAffinity,omitempty"`
	// ProjectedTokenMount mounts projected ServiceAccount tokens into Pods.
	// +optional
	ProjectedTokenMount ProjectedTokenMountWebhookConfig `json:"projectedTokenMount,omitempty"`
	// NodeAgentAuthorizer authorizes requests of node agents.
	// +optional
	NodeAgentAuthorizer NodeAgentAuthorizerWebhookConfig `json:"nodeAgentAuthorizer,omitempty"`
	// SeccompProfile sets the seccomp profile of Pods.
	// +optional
	SeccompProfile WebhookSwitch `json:"seccompProfile,omitempty"`
	// TokenInvalidator invalidates static ServiceAccount tokens at admission.
	// +optional
	TokenInvalidator WebhookSwitch `json:"tokenInvalidator,omitempty"`
	// VPAInPlaceUpdates sets the update mode of VerticalPodAutoscalers.
	// +optional
	VPAInPlaceUpdates WebhookSwitch `json:"vpaInPlaceUpdates,omitempty"`
	// OnlyReport lists the webhooks that allow requests that they would refuse, and only report them: by a warning,
	// an audit annotation, a metric and a log line. Possible are crd-deletion-protection and extension-validation.
	// Default none.
	// +optional
	OnlyReport []string `json:"onlyReport,omitempty"`
}

// WebhookSwitch is the configuration of a webhook that can only be switched on.
type WebhookSwitch struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
}

// EndpointSliceHintsWebhookConfig configures the endpoint-slice-hints webhook.
type EndpointSliceHintsWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// Force also sets hints in Kubernetes 1.32 and later, where Services have the field trafficDistribution. Default
	// false.
	// +optional
	Force bool `json:"force,omitempty"`
}

// HighAvailabilityConfigWebhookConfig configures the high-availability-config webhook.
type HighAvailabilityConfigWebhookConfig struct {
	// Enabled switches the webhook and its controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// DefaultNotReadyTolerationSeconds is the time in seconds that Pods stay on a Node that is not ready.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is the time in seconds that Pods stay on an unreachable Node.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
	// RelaxHostSpreadOnSingleNode makes the spread over hosts optional in a cluster with one Node. Default true
	// when enabled.
	// +optional
	RelaxHostSpreadOnSingleNode *bool `json:"relaxHostSpreadOnSingleNode,omitempty"`
}

// KubernetesServiceHostWebhookConfig configures the kubernetes-service-host webhook.
type KubernetesServiceHostWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// Host is the name of the API server for Pods. Required when enabled.
	// +optional
	Host string `json:"host,omitempty"`
}

// SystemComponentsConfigWebhookConfig configures the system-components-config webhook.
type SystemComponentsConfigWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// NodeSelector selects the Nodes whose taints are tolerated.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// PodNodeSelector is added to the node selector of Pods.
	// +optional
	PodNodeSelector map[string]string `json:"podNodeSelector,omitempty"`
	// PodTolerations are added to the tolerations of Pods.
	// +optional
	PodTolerations []corev1.Toleration `json:"podTolerations,omitempty"`
}

// PodSchedulerNameWebhookConfig configures the pod-scheduler-name webhook.
type PodSchedulerNameWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// SchedulerName is the scheduler that Pods get. Default default-scheduler when enabled.
	// +optional
	SchedulerName *string `json:"schedulerName,omitempty"`
}

// ProjectedTokenMountWebhookConfig configures the projected-token-mount webhook.
type ProjectedTokenMountWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// ExpirationSeconds is the lifetime of the tokens in seconds, at least 600. Default 43200 when enabled.
	// +optional
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
}

// NodeAgentAuthorizerWebhookConfig configures the node-agent authorizer.
type NodeAgentAuthorizerWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// MachineNamespace is the namespace of the Machines in the source cluster. Default none.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// AuthorizeWithSelectors also checks the selectors of list and watch requests. Default false.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
	// Nodes configures the rights of agents on Nodes.
	// +optional
	Nodes NodeAgentAuthorizerNodes `json:"nodes,omitempty"`
	// MaxStaleness is the longest time that the watch of a kind may be silent before readiness fails; 0 means no
	// limit. Default 10m.
	// +optional
	MaxStaleness *metav1.Duration `json:"maxStaleness,omitempty"`
	// Shadow is a second policy that decides each request without effect: decisions that differ are counted by rule,
	// and a sample is logged. Unset keys have the values of the policy in effect. Default none.
	// +optional
	Shadow *NodeAgentAuthorizerShadow `json:"shadow,omitempty"`
}

// NodeAgentAuthorizerShadow is a policy that decides without any effect. Unset fields have the values of the policy
// in effect.
type NodeAgentAuthorizerShadow struct {
	// AuthorizeWithSelectors is the value for the shadow policy.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
	// Nodes configures the shadow policy.
	// +optional
	Nodes NodeAgentAuthorizerShadowNodes `json:"nodes,omitempty"`
}

// NodeAgentAuthorizerShadowNodes has the rights of agents on Nodes in the shadow policy.
type NodeAgentAuthorizerShadowNodes struct {
	// AllowWatchAll is the value for the shadow policy.
	// +optional
	AllowWatchAll *bool `json:"allowWatchAll,omitempty"`
}

// NodeAgentAuthorizerNodes configures the rights of agents on Nodes.
type NodeAgentAuthorizerNodes struct {
	// AllowWatchAll lets agents watch all Nodes, as newer agents do before their own Node is registered. Default
	// false.
	// +optional
	AllowWatchAll bool `json:"allowWatchAll,omitempty"`
}
