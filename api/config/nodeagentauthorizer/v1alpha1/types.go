package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

const (
	// APIVersion is the apiVersion of configuration files.
	APIVersion = "nodeagentauthorizer.config.gardener.cloud/v1alpha1"
	// Kind is the kind of configuration files.
	Kind = "NodeAgentAuthorizerConfiguration"
)

// NodeAgentAuthorizerConfiguration is the configuration file of node-agent-authorizer (NAA-2).
type NodeAgentAuthorizerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// SourceClientConnection is the connection to the cluster with the Machines. It is used only with
	// machineNamespace.
	// +optional
	SourceClientConnection ClientConnection `json:"sourceClientConnection,omitempty"`
	// TargetClientConnection is the connection to the shoot. It is used only without shootsDirectory.
	// +optional
	TargetClientConnection ClientConnection `json:"targetClientConnection,omitempty"`
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
	// ShootsDirectory is a folder with a ShootEntry for each shoot, if the process serves several.
	// +optional
	ShootsDirectory string `json:"shootsDirectory,omitempty"`
	// ShootLimits limits the lists and the memory of each shoot of shootsDirectory. Requests of agents are refused in
	// a shoot that exceeds a limit.
	// +optional
	ShootLimits ShootLimits `json:"shootLimits,omitempty"`
	// MaxStaleness is the longest time that the watch of a kind may be silent before readiness fails; 0 means no
	// limit. It has no effect with shootsDirectory. Default 10m.
	// +optional
	MaxStaleness *metav1.Duration `json:"maxStaleness,omitempty"`

	Agents `json:",inline"`
}

// ShootLimits are the limits of a shoot.
type ShootLimits struct {
	// Pages is the largest number of pages, of 500 objects each, that one kind of a shoot may have. The objects kept
	// in memory are limited to 128 KiB for each page. Default 200.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Pages int32 `json:"pages,omitempty"`
	// ListTimeout is the time limit of a list. Default 5m.
	// +optional
	ListTimeout *metav1.Duration `json:"listTimeout,omitempty"`
}

// Agents configures the decisions about the agents of a shoot.
type Agents struct {
	// MachineNamespace is the namespace of the shoot's Machines in the source cluster. Default none: agents are
	// identified by their Nodes.
	// +optional
	MachineNamespace *string `json:"machineNamespace,omitempty"`
	// AuthorizeWithSelectors also checks the selectors of list and watch requests for Pods: true, false, or Auto
	// (true if the shoot's API server sends selectors). Default false.
	// +optional
	AuthorizeWithSelectors Selectors `json:"authorizeWithSelectors,omitempty"`
	// Nodes configures the rights of agents on Nodes.
	// +optional
	Nodes NodesConfiguration `json:"nodes,omitempty"`
	// Shadow is a second policy that decides each request without effect: decisions that differ are counted by rule,
	// and a sample is logged. Unset keys have the values of the policy in effect. Default none.
	// +optional
	Shadow *Shadow `json:"shadow,omitempty"`
}

// Shadow is a policy that decides without any effect. Unset fields have the values of the policy in effect.
type Shadow struct {
	// AuthorizeWithSelectors is the value for the shadow policy.
	// +optional
	AuthorizeWithSelectors *bool `json:"authorizeWithSelectors,omitempty"`
	// Nodes configures the shadow policy.
	// +optional
	Nodes ShadowNodes `json:"nodes,omitempty"`
}

// ShadowNodes has the rights of agents on Nodes in the shadow policy.
type ShadowNodes struct {
	// AllowWatchAll is the value for the shadow policy.
	// +optional
	AllowWatchAll *bool `json:"allowWatchAll,omitempty"`
}

// NodesConfiguration configures the rights of agents on Nodes.
type NodesConfiguration struct {
	// AllowWatchAll lets agents watch all Nodes, as newer agents do before their own Node is registered. Default
	// false.
	// +optional
	AllowWatchAll bool `json:"allowWatchAll,omitempty"`
}

// ShootEntry is the content of a file <name>.yaml in shootsDirectory. The shoot is served under a path that ends with
// this name. Files are read again when they change.
type ShootEntry struct {
	// TargetClientConnection is the connection to the shoot. A relative path of its kubeconfig is relative to
	// shootsDirectory.
	TargetClientConnection ClientConnection `json:"targetClientConnection,omitempty"`

	Agents `json:",inline"`
}

// ClientConnection configures the connection to a cluster.
type ClientConnection struct {
	// Kubeconfig is the path of a kubeconfig file; KUBECONFIG and TARGET_KUBECONFIG in the environment come before
	// it. Empty means the ServiceAccount of the Pod.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// QPS limits requests per second; negative means no limit. Default 100.
	// +optional
	QPS float32 `json:"qps,omitempty"`
	// Burst limits the requests that may exceed QPS for a moment. Default 130.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Burst int32 `json:"burst,omitempty"`
}

// Connection returns the connection in the form that all executables share.
func (c *ClientConnection) Connection() *shared.ClientConnection {
	return &shared.ClientConnection{Kubeconfig: c.Kubeconfig, QPS: c.QPS, Burst: c.Burst}
}

// ServerConfiguration configures the ports.
type ServerConfiguration struct {
	// Webhooks is the HTTPS server of the webhook. Default port 9449.
	// +optional
	Webhooks shared.HTTPSServer `json:"webhooks,omitempty"`
	// HealthProbes is the HTTP server of /healthz and /readyz. Default port 8081.
	// +optional
	HealthProbes *shared.Server `json:"healthProbes,omitempty"`
	// Metrics is the HTTP server of /metrics. Default port 8080.
	// +optional
	Metrics *shared.Server `json:"metrics,omitempty"`
}

// Selectors is true, false or Auto.
type Selectors string

// Values of Selectors.
const (
	SelectorsTrue  Selectors = "true"
	SelectorsFalse Selectors = "false"
	SelectorsAuto  Selectors = "Auto"
)

// UnmarshalJSON reads a boolean or a string.
func (s *Selectors) UnmarshalJSON(raw []byte) error {
	switch text := string(raw); text {
	case `true`, `"true"`:
		*s = SelectorsTrue
	case `false`, `"false"`, `null`, `""`:
		*s = SelectorsFalse
	case `"Auto"`:
		*s = SelectorsAuto
	default:
		return fmt.Errorf("authorizeWithSelectors: want true, false or Auto, got %s", text)
	}
	return nil
}
