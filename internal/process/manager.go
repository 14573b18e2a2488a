package process

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	goruntime "runtime"
	"strconv"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
)

// ManagerOptions are the parameters of a manager.
type ManagerOptions struct {
	REST           *rest.Config
	Scheme         *runtime.Scheme
	LeaderElection *shared.LeaderElection
	Webhooks       *shared.HTTPSServer
	// HealthProbes and Metrics may be nil: then these ports are not served.
	HealthProbes *shared.Server
	Metrics      *shared.Server
	Debugging    *shared.Debugging
	// Configuration is the configuration in effect; it is served next to the profiles.
	Configuration any
	Cache         cache.Options
	// Mapper maps kinds to resources; nil means discovery.
	Mapper func(*rest.Config, *http.Client) (meta.RESTMapper, error)
	Log    logr.Logger
	// Guard checks the readers of metrics and debug endpoints; nil means that everyone may read them.
	Guard *guard.Guard
	// HTTPClient, if set, is used for all requests of the manager to the cluster.
	HTTPClient *http.Client
}

// NewManager returns a manager with servers for metrics, probes, webhooks and, if enabled, profiles.
func NewManager(o ManagerOptions) (manager.Manager, error) {
	registerOwn(metrics.Registry)
	certificate := newCertificate(o.Webhooks.TLS.ServerCertDir)
	webhooks, err := newWebhookServer(&o, certificate)
	if err != nil {
		return nil, fmt.Errorf("setting up the webhook server: %w", err)
	}
	options := manager.Options{
		Scheme:                        o.Scheme,
		Logger:                        o.Log,
		Cache:                         o.Cache,
		MapperProvider:                o.Mapper,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // withPorts serves metrics and probes.
		HealthProbeBindAddress:        "0",
		GracefulShutdownTimeout:       ptr.To(GracePeriod),
		LeaderElectionReleaseOnCancel: true,
		WebhookServer:                 webhooks,
	}
	if l := o.LeaderElection; l != nil && ptr.Deref(l.LeaderElect, false) {
		options.LeaderElection = true
		options.LeaderElectionResourceLock = l.ResourceLock
		options.LeaderElectionID = l.ResourceName
		options.LeaderElectionNamespace = l.ResourceNamespace
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &l.LeaseDuration.Duration, &l.RenewDeadline.Duration, &l.RetryPeriod.Duration
	}
	mgr, err := manager.New(o.REST, options)
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	return withPorts(mgr, &o, certificate)
}

// profiles reports whether profiles are enabled, and starts those of contention.
func profiles(o *ManagerOptions) bool {
	wanted := o.Debugging != nil && ptr.Deref(o.Debugging.EnableProfiling, false)
	if wanted && ptr.Deref(o.Debugging.EnableContentionProfiling, false) {
		goruntime.SetBlockProfileRate(1)
	}
	return wanted
}

// address returns the listening address of a server.
func address(server *shared.Server) string {
	return net.JoinHostPort(server.BindAddress, strconv.Itoa(server.Port))
}

// ConfigPath is the path of the configuration in effect, on the port of the metrics. It requires
// debugging.enableProfiling.
const ConfigPath = "/debug/config"

// debugHandlers returns the usual handlers of profiles, and the one of the configuration. cmdline is left out, as it
// may contain secrets from other processes. The configuration has no secrets: it has names of files.
func debugHandlers(configuration any) (map[string]http.Handler, error) {
	text, err := yaml.Marshal(configuration)
	if err != nil {
		return nil, err
	}
	return map[string]http.Handler{
		"/debug/pprof":         http.RedirectHandler("/debug/pprof/", http.StatusFound),
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"/debug/pprof/cmdline": http.NotFoundHandler(),
		ConfigPath: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = w.Write(text)
		}),
	}, nil
}
