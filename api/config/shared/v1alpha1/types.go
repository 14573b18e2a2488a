package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values of logLevel and logFormat.
const (
	LogLevelDebug = "debug"
	LogLevelInfo  = "info"
	LogLevelError = "error"
	LogFormatJSON = "json"
	LogFormatText = "text"
)

// ClientConnection configures the connection to a cluster (contract, operations 1.3).
type ClientConnection struct {
	// Kubeconfig is the path of a kubeconfig file; KUBECONFIG and TARGET_KUBECONFIG in the environment come before
	// it. Empty means the ServiceAccount of the Pod.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// AcceptContentTypes is the Accept header of requests for built-in kinds. Default: the client library's.
	// +optional
	AcceptContentTypes string `json:"acceptContentTypes,omitempty"`
	// ContentType is the type of sent bodies. Default: the client library's.
	// +optional
	ContentType string `json:"contentType,omitempty"`
	// QPS limits requests per second; negative means no limit. Default 100.
	// +optional
	QPS float32 `json:"qps,omitempty"`
	// Burst limits the requests that may exceed QPS for a moment. Default 130.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Burst int32 `json:"burst,omitempty"`
	// Namespaces restricts watches of namespaced kinds. Empty means all.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// CacheResyncPeriod is accepted for compatibility; at least 10s. Default 24h.
	// +optional
	CacheResyncPeriod *metav1.Duration `json:"cacheResyncPeriod,omitempty"`
	// Namespace is an older form of namespaces, to which it is added (OLD-30).
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// DisableCachedClient switches off the watches of the target, so that drift is found at the end of each sync
	// period only (OLD-31). Default false.
	// +optional
	DisableCachedClient *bool `json:"disableCachedClient,omitempty"`
}

// LeaderElection configures the election among several instances (contract, operations 1.4).
type LeaderElection struct {
	// LeaderElect switches the election on. Default true.
	// +optional
	LeaderElect *bool `json:"leaderElect,omitempty"`
	// LeaseDuration is the time that other instances wait, after the last renewal, before they take over. Default
	// 15s.
	// +optional
	LeaseDuration metav1.Duration `json:"leaseDuration,omitempty"`
	// RenewDeadline is the time after which a leader that cannot renew gives up. Default 10s.
	// +optional
	RenewDeadline metav1.Duration `json:"renewDeadline,omitempty"`
	// RetryPeriod is the time between two attempts. Default 2s.
	// +optional
	RetryPeriod metav1.Duration `json:"retryPeriod,omitempty"`
	// ResourceLock is the kind of the lock; only leases is supported. Default leases.
	// +optional
	ResourceLock string `json:"resourceLock,omitempty"`
	// ResourceName is the name of the lock. Default gardener-resource-manager.
	// +optional
	ResourceName string `json:"resourceName,omitempty"`
	// ResourceNamespace is the namespace of the lock. Default: the Pod's own namespace.
	// +optional
	ResourceNamespace string `json:"resourceNamespace,omitempty"`
}

// Server is the address of an HTTP server.
type Server struct {
	// BindAddress is the IP address to listen on. Empty means all.
	// +optional
	BindAddress string `json:"bindAddress,omitempty"`
	// Port is the TCP port to listen on.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int `json:"port,omitempty"`
}

// HTTPSServer is the address and the certificate of an HTTPS server.
type HTTPSServer struct {
	Server `json:",inline"`
	// TLS configures the certificate.
	// +optional
	TLS TLSServer `json:"tls,omitempty"`
}

// TLSServer configures the certificate of a server.
type TLSServer struct {
	// ServerCertDir is the folder with tls.crt and tls.key; both are read again when they change.
	// Default <temp dir>/k8s-webhook-server/serving-certs.
	// +optional
	ServerCertDir string `json:"serverCertDir,omitempty"`
	// ClientCAFile is a file with the CAs (PEM) of client certificates of API servers; it is read again when it
	// changes. Other clients get 401 from authorizers, webhooks and pages that need no token. If it is empty, clients
	// need no certificate.
	// +optional
	ClientCAFile string `json:"clientCAFile,omitempty"`
}

// Debugging enables profiling and debug endpoints.
type Debugging struct {
	// EnableProfiling serves /debug/pprof and the effective configuration, /debug/config, on the metrics port.
	// Default false.
	// +optional
	EnableProfiling *bool `json:"enableProfiling,omitempty"`
	// EnableContentionProfiling records where goroutines block, with enableProfiling only. Default false.
	// +optional
	EnableContentionProfiling *bool `json:"enableContentionProfiling,omitempty"`
	// Authentication configures access to metrics and debug endpoints.
	// +optional
	Authentication Authentication `json:"authentication,omitempty"`
}

// Authentication configures access to metrics and debug endpoints.
type Authentication struct {
	// Enabled serves the metrics port with TLS, using the certificate of the webhooks, and only to tokens for which
	// the API server of the source or garden allows the path as a nonResourceURL. It also serves profiles,
	// /debug/config and /debug/log-level, which sets the log level. Debug pages on the webhooks' port then need such
	// a token, too. Default false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
}
