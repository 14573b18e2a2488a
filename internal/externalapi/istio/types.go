// Package istio has the fields of networking.istio.io that decide which Services are reached through Gateways, and
// how traffic to them is shaped.
//
// +kubebuilder:object:generate=true
package istio

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-project/espalier/internal/externalapi/partialmeta"
)

// Group is the API group.
const Group = "networking.istio.io"

// VirtualService routes the traffic of hosts to Services.
//
// +kubebuilder:object:root=true
type VirtualService struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               VirtualServiceSpec `json:"spec,omitempty"`
}

// VirtualServiceSpec is the specification of a VirtualService.
type VirtualServiceSpec struct {
	Gateways []string `json:"gateways,omitempty"`
	HTTP     []Route  `json:"http,omitempty"`
	TLS      []Route  `json:"tls,omitempty"`
	TCP      []Route  `json:"tcp,omitempty"`
}

// Route is a route of any protocol.
type Route struct {
	Route []RouteDestination `json:"route,omitempty"`
}

// RouteDestination is the destination of a part of the traffic.
type RouteDestination struct {
	Destination Destination `json:"destination,omitempty"`
}

// Destination is a port of a host.
type Destination struct {
	Host string       `json:"host,omitempty"`
	Port PortSelector `json:"port,omitempty"`
}

// PortSelector names a port.
type PortSelector struct {
	Number int32 `json:"number,omitempty"`
}

// Gateway is a load balancer, which runs in the Pods that it selects.
//
// +kubebuilder:object:root=true
type Gateway struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               GatewaySpec `json:"spec,omitempty"`
}

// GatewaySpec is the specification of a Gateway.
type GatewaySpec struct {
	Selector map[string]string `json:"selector,omitempty"`
}

// DestinationRule shapes the traffic to a host.
//
// +kubebuilder:object:root=true
type DestinationRule struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	Spec               DestinationRuleSpec `json:"spec,omitempty"`
}

// DestinationRuleSpec is the specification of a DestinationRule.
type DestinationRuleSpec struct {
	Host             string            `json:"host,omitempty"`
	ExportTo         []string          `json:"exportTo,omitempty"`
	Subsets          []Subset          `json:"subsets,omitempty"`
	WorkloadSelector *WorkloadSelector `json:"workloadSelector,omitempty"`
	TrafficPolicy    *TrafficPolicy    `json:"trafficPolicy,omitempty"`
}

// Subset is a part of a host's endpoints.
type Subset struct {
	Name string `json:"name,omitempty"`
}

// WorkloadSelector restricts a rule to some clients.
type WorkloadSelector struct {
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
}

// TrafficPolicy configures connections, for all ports and for single ones.
type TrafficPolicy struct {
	ConnectionPool    *ConnectionPool     `json:"connectionPool,omitempty"`
	PortLevelSettings []PortTrafficPolicy `json:"portLevelSettings,omitempty"`
}

// PortTrafficPolicy configures connections to one port.
type PortTrafficPolicy struct {
	Port           PortSelector    `json:"port,omitempty"`
	ConnectionPool *ConnectionPool `json:"connectionPool,omitempty"`
}

// ConnectionPool configures the pooling of connections.
type ConnectionPool struct {
	HTTP *HTTPSettings `json:"http,omitempty"`
}

// HTTPSettings are the settings of HTTP connections.
type HTTPSettings struct {
	UseClientProtocol bool   `json:"useClientProtocol,omitempty"`
	H2UpgradePolicy   string `json:"h2UpgradePolicy,omitempty"`
}

// EnvoyFilter changes the configuration that gateways and sidecars receive.
//
// +kubebuilder:object:root=true
type EnvoyFilter struct {
	metav1.TypeMeta    `json:",inline"`
	partialmeta.Object `json:"metadata,omitempty"`
	// Spec is compared as it is.
	Spec runtime.RawExtension `json:"spec,omitempty"`
}
