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
	// DefaultResourceClass is the class of an instance that names none.
	DefaultResourceClass = "resources"
	// ClusterIDFromCluster as clusterID: the ConfigMap kube-system/cluster-identity has it, and must exist.
	ClusterIDFromCluster = "<cluster>"
	// ClusterIDDefault as clusterID: the ConfigMap kube-system/cluster-identity has it, or there is none.
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
	// Targets has the process look after many targets in place of the one of targetClientConnection, whose other settings then are those
	// of each target. Of the features only the ManagedResource and health controllers go with it.
	// +optional
	Targets *TargetsConfiguration `json:"targets,omitempty"`
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
	// ClusterID is the first part of the origin annotation: a literal, "<cluster>" or "<default>" (from the ConfigMap
	// kube-system/cluster-identity of the source), or empty for none.
	// +optional
	ClusterID *string `json:"clusterID,omitempty"`
	// ResourceClass is the class of the ManagedResources to look after; "*" means every class. Default resources.
	// +optional
	ResourceClass *string `json:"resourceClass,omitempty"`
	// CacheSyncTimeout limits how long a controller waits for its caches at start. Default 2m.
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
	// MinimumAge is the age from which an object is collected: its creator has this time to refer to it. Default 10m when enabled.
	// +optional
	MinimumAge *metav1.Duration `json:"minimumAge,omitempty"`
	// ScanPodSpecs also keeps objects to which the specs of Pods and of Pod templates refer without an annotation. Default true when enabled.
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
	// Class is the value that the label resources.gardener.cloud/class of Secrets must have; empty means all Secrets. Default
	// empty, and shoot in the profile gardener.
	// +optional
	Class *string `json:"class,omitempty"`
	// ReviewTokens has the target judge the existing tokens, and renews those that it does not accept. Default true
	// when enabled.
	// +optional
	ReviewTokens *bool `json:"reviewTokens,omitempty"`
}

// HealthControllerConfig configures both health controllers.
type HealthControllerConfig struct {
	// ConcurrentSyncs is the number of workers of each of the two controllers. Default 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time between two checks of a ManagedResource without any event, at least 15s. Default 1m.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// CustomResources also checks custom resources of kinds without a rule of their own, by their observedGeneration
	// and their conditions Ready, Reconciling and Stalled. Default false.
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
	// MachineNamespace is the namespace of the Machines in the source cluster. Unset means that there are none.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// StrictBootstrap refuses a bootstrap token as soon as the Machine has the label node; else once the Node that it names is
	// there. Default false.
	// +optional
	StrictBootstrap *bool `json:"strictBootstrap,omitempty"`
	// BootstrapByKubelet also lets kubelets ask for the first certificate of a node agent. Any kubelet can take the identity of a
	// machine without a Node then. Default false.
	// +optional
	BootstrapByKubelet *bool `json:"bootstrapByKubelet,omitempty"`
	// NodeAgentServiceAccount lets the ServiceAccount kube-system/gardener-node-agent ask for the certificates of machines that
	// have become Nodes. Default true.
	// +optional
	NodeAgentServiceAccount *bool `json:"nodeAgentServiceAccount,omitempty"`
}

// ManagedResourceControllerConfig configures the controller that applies ManagedResources.
type ManagedResourceControllerConfig struct {
	// ConcurrentSyncs is the number of workers. Default 5.
	// +optional
	ConcurrentSyncs *int `json:"concurrentSyncs,omitempty"`
	// SyncPeriod is the time between two runs of a ManagedResource without any event, and the time limit of one
	// reconciliation; at least 15s. Default 1m.
	// +optional
	SyncPeriod *metav1.Duration `json:"syncPeriod,omitempty"`
	// AlwaysUpdate sends an update for every object in every sync period, changed or not. Default false.
	// +optional
	AlwaysUpdate *bool `json:"alwaysUpdate,omitempty"`
	// AlwaysUpdateScope limits alwaysUpdate: All objects, or Unwatched ones only. Objects whose drift a watch reports
	// are then compared, and written if they differ, as without alwaysUpdate. Default All.
	// +optional
	// +kubebuilder:validation:Enum=All;Unwatched
	AlwaysUpdateScope AlwaysUpdateScope `json:"alwaysUpdateScope,omitempty"`
	// ManagedByLabelValue is the value of the label resources.gardener.cloud/managed-by. Default gardener.
	// +optional
	ManagedByLabelValue *string `json:"managedByLabelValue,omitempty"`
	// ApplyWhileDeletionPending applies the new objects while old ones are still being deleted. Default false.
	// +optional
	ApplyWhileDeletionPending *bool `json:"applyWhileDeletionPending,omitempty"`
	// DeleteForeignObjects deletes an object of the inventory even if its origin annotation names another
	// ManagedResource meanwhile. Default false.
	// +optional
	DeleteForeignObjects *bool `json:"deleteForeignObjects,omitempty"`
	// DriftRepairDelay is the time from a change or deletion by another client until its repair; an Event reports the
	// change at once. Default 0: drift is repaired at once.
	// +optional
	DriftRepairDelay *metav1.Duration `json:"driftRepairDelay,omitempty"`
	// AuditPeriod is the time between two lists of each kind in use, metadata only, which find changes that no
	// watch reported. Default 24h; 0 switches the audit off.
	// +optional
	AuditPeriod *metav1.Duration `json:"auditPeriod,omitempty"`
	// CollectOrphans deletes the objects that an audit finds in no inventory, and whose origin annotation names a ManagedResource.
	// Without it an Event reports them. Default false.
	// +optional
	CollectOrphans *bool `json:"collectOrphans,omitempty"`
	// AllowHolds exempts objects from repair that have the annotation resources.gardener.cloud/leave-alone-until in the
	// target. The annotation resources.gardener.cloud/allow-holds of a ManagedResource overrides it for its
	// objects. Default: true if the target is the source, else false, as others may write its objects.
	// +optional
	AllowHolds *bool `json:"allowHolds,omitempty"`
	// ReadyCondition adds the conditions Ready, Reconciling and Stalled to ManagedResources, by which clients that use kstatus, such as Flux, Argo CD and
	// Helm, judge them. Default true under profile contract; false under profile gardener.
	// +optional
	ReadyCondition *bool `json:"readyCondition,omitempty"`
	// RolloutGroupNamespace is the namespace of the source with the ConfigMaps of roll-out groups, which the annotation
	// resources.gardener.cloud/rollout-group of ManagedResources names. Default: none; the annotation means nothing then.
	// +optional
	RolloutGroupNamespace *string `json:"rolloutGroupNamespace,omitempty"`
	// EmergencyStop follows the Namespace garden of the source, whose annotation shoot.gardener.cloud/emergency-stop-reconciliations=true stops
	// all ManagedResources of shoots. Default true under profile contract, false under profile gardener.
	// +optional
	EmergencyStop *bool `json:"emergencyStop,omitempty"`
	// MassDeletion is the brake on deletions that may be an accident.
	// +optional
	MassDeletion MassDeletionConfig `json:"massDeletion"`
}

// MassDeletionConfig configures the brake on the deletion of objects whose manifests vanished: of all objects of a ManagedResource that has ten or more, and of
// any CustomResourceDefinition, Namespace, PersistentVolume or PersistentVolumeClaim.
type MassDeletionConfig struct {
	// Wait is the time for which such a deletion waits for its manifests to come back, unless the annotation resources.gardener.cloud/confirm-deletion confirms it.
	// Default 10m under profile contract; 0 under profile gardener: an Event and a metric report the deletion, which does not wait.
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
	// NamespaceSelectors select the namespaces to look after, OR-ed. Empty means all.
	// +optional
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// IngressControllerSelector selects the Pods of the ingress controller.
	// +optional
	IngressControllerSelector *IngressControllerSelector `json:"ingressControllerSelector,omitempty"`
	// OnlyForExistingPods creates a policy only where a Pod with its label exists. Default false.
	// +optional
	OnlyForExistingPods *bool `json:"onlyForExistingPods,omitempty"`
	// DescriptionFormat is the form of selectors in the annotation gardener.cloud/description: Labels (map[k:v]) or Selector ({map[k:v] []}: the
	// text that Gardener v1.150.0-dev (b312835d) writes, so that neither rewrites policies of the other). Default Labels.
	// +optional
	// +kubebuilder:validation:Enum=Labels;Selector
	DescriptionFormat DescriptionFormat `json:"descriptionFormat,omitempty"`
}

// IngressControllerSelector selects the Pods of the ingress controller.
type IngressControllerSelector struct {
	// Namespace is the namespace of the Pods.
	// +optional
	Namespace string `json:"namespace"`
	// PodSelector selects the Pods.
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
	// OnlyReport are the names of webhooks that admit a request in spite of a refusal, and report the refusal by a
	// warning, an audit annotation, a metric and a line of the log. Names are crd-deletion-protection and
	// extension-validation; webhooks that change objects have no such mode. Default none.
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
	// Force sets hints also from Kubernetes 1.32 on, where Services have the field trafficDistribution. Default false.
	// +optional
	Force bool `json:"force,omitempty"`
}

// HighAvailabilityConfigWebhookConfig configures the high-availability-config webhook.
type HighAvailabilityConfigWebhookConfig struct {
	// Enabled switches the webhook and its controller on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// DefaultNotReadyTolerationSeconds is the time in seconds for which Pods stay on a Node that is not ready.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DefaultNotReadyTolerationSeconds *int64 `json:"defaultNotReadyTolerationSeconds,omitempty"`
	// DefaultUnreachableTolerationSeconds is the time in seconds for which Pods stay on a Node that is unreachable.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DefaultUnreachableTolerationSeconds *int64 `json:"defaultUnreachableTolerationSeconds,omitempty"`
	// RelaxHostSpreadOnSingleNode makes the spread over hosts a wish where there is but one Node. Default true when enabled.
	// +optional
	RelaxHostSpreadOnSingleNode *bool `json:"relaxHostSpreadOnSingleNode,omitempty"`
}

// KubernetesServiceHostWebhookConfig configures the kubernetes-service-host webhook.
type KubernetesServiceHostWebhookConfig struct {
	// Enabled switches the webhook on. Default false.
	// +optional
	Enabled bool `json:"enabled"`
	// Host is the name of the API server that Pods are to use. Required when enabled.
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
	// MachineNamespace is the namespace of the Machines in the source cluster. Unset means that there are none.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// AuthorizeWithSelectors also decides by the selectors of list and watch requests. Default false.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
	// Nodes configures the rights of agents on Nodes.
	// +optional
	Nodes NodeAgentAuthorizerNodes `json:"nodes,omitempty"`
	// MaxStaleness limits the time without news of a kind, after which readiness fails. 0 means no limit.
	// Default 10m.
	// +optional
	MaxStaleness *metav1.Duration `json:"maxStaleness,omitempty"`
	// Shadow is a second policy that decides each request without any effect: decisions that differ are counted by rule, and a sample is
	// logged. Unset means none.
	// +optional
	Shadow *NodeAgentAuthorizerShadow `json:"shadow,omitempty"`
}

// NodeAgentAuthorizerShadow is a policy that decides without any effect. A field that is unset is as in the policy that answers.
type NodeAgentAuthorizerShadow struct {
	// AuthorizeWithSelectors of the shadow policy.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
	// Nodes of the shadow policy.
	// +optional
	Nodes NodeAgentAuthorizerShadowNodes `json:"nodes,omitempty"`
}

// NodeAgentAuthorizerShadowNodes has the rights of agents on Nodes in the shadow policy.
type NodeAgentAuthorizerShadowNodes struct {
	// AllowWatchAll of the shadow policy.
	// +optional
	AllowWatchAll *bool `json:"allowWatchAll,omitempty"`
}

// NodeAgentAuthorizerNodes configures the rights of agents on Nodes.
type NodeAgentAuthorizerNodes struct {
	// AllowWatchAll lets agents watch all Nodes, as newer agents do before theirs is registered. Default false.
	// +optional
	AllowWatchAll bool `json:"allowWatchAll,omitempty"`
}
