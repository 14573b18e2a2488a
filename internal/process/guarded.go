package process

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
)

// Guard returns the guard of metrics and of the debugging endpoints; nil unless the configuration enables authentication (OPB-25).
// The guard has connections of its own.
func Guard(d *shared.Debugging, config *rest.Config, log logr.Logger) (*guard.Guard, error) {
	if d == nil || !d.Authentication.Enabled {
		return nil, nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	return guard.New(config, client, clock.RealClock{}, log)
}

// guarded serves metrics and the debugging endpoints only to clients that the guard admits, with TLS, because these clients send tokens. The log level is
// served there, too: only clients that the guard admits can set it.
func guarded(metrics *metricsserver.Options, o *ManagerOptions) {
	metrics.SecureServing, metrics.CertDir = true, o.Webhooks.TLS.ServerCertDir
	metrics.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }}
	metrics.FilterProvider = func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
		return func(_ logr.Logger, handler http.Handler) (http.Handler, error) { return o.Guard.Wrap(handler), nil }, nil
	}
	if level, found := levelOf(o.Log); found {
		metrics.ExtraHandlers[LogLevelPath] = &logLevel{level, o.Log}
	}
}
