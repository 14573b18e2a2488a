package process

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint"
)

// probed is a manager whose probes use a server of this package, because that of controller-runtime accepts headers
// of a megabyte.
type probed struct {
	manager.Manager
	live, ready *healthz.Handler
}

// AddHealthzCheck implements manager.Manager.
func (p *probed) AddHealthzCheck(name string, check healthz.Checker) error {
	p.live.Checks[name] = check
	return nil
}

// AddReadyzCheck implements manager.Manager.
func (p *probed) AddReadyzCheck(name string, check healthz.Checker) error {
	p.ready.Checks[name] = check
	return nil
}

// withPorts returns a manager that serves metrics and probes.
func withPorts(mgr manager.Manager, o *ManagerOptions, certificate *certificate) (manager.Manager, error) {
	p := &probed{mgr, &healthz.Handler{Checks: map[string]healthz.Checker{}}, &healthz.Handler{Checks: map[string]healthz.Checker{}}}
	probes := http.NewServeMux()
	for path, handler := range map[string]http.Handler{"/healthz": p.live, "/readyz": p.ready} {
		probes.Handle(path, http.StripPrefix(path, handler))
		probes.Handle(path+"/", http.StripPrefix(path, handler))
	}
	served, err := metricsHandler(o)
	if err != nil {
		return nil, err
	}
	var secure *tls.Config
	if o.Guard != nil {
		secure = certificate.config()
	}
	for _, port := range []struct {
		name, key string
		at        *shared.Server
		handler   http.Handler
		secure    *tls.Config
	}{{"health probe", "server.healthProbes.port", o.HealthProbes, probes, nil}, {"metrics", "server.metrics.port", o.Metrics, served, secure}} {
		if port.at == nil {
			continue
		}
		server, err := newPort(port.name, port.key, address(port.at), port.handler, port.secure)
		if err != nil {
			return nil, err
		}
		if err := mgr.Add(server); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// newPort returns the server of a port, with the key of its configuration. With TLS it accepts headers with tokens.
func newPort(name, key, address string, handler http.Handler, secure *tls.Config) (*manager.Server, error) {
	headers := endpoint.HeaderBytes
	if secure != nil {
		headers = endpoint.TokenHeaderBytes
	}
	server, err := endpoint.NewServer(handler, headers)
	if err != nil {
		return nil, err
	}
	server.WriteTimeout = 0 // A profile takes as long as its reader requests.
	return &manager.Server{Name: name, Server: server, Listener: &lateListener{key: key, address: address, secure: secure}}, nil
}

// lateListener starts to listen when it is first used, so that a manager that is never started opens no port.
type lateListener struct {
	key, address string
	secure       *tls.Config
	once         sync.Once
	inner        net.Listener
	err          error
}

func (l *lateListener) open() (net.Listener, error) {
	l.once.Do(func() {
		if l.inner, l.err = net.Listen("tcp", l.address); l.err == nil && l.secure != nil {
			l.inner = tls.NewListener(l.inner, l.secure)
		} else if l.err != nil {
			l.err = fmt.Errorf("%s: %w", l.key, l.err)
		}
	})
	return l.inner, l.err
}

// Accept implements net.Listener.
func (l *lateListener) Accept() (net.Conn, error) {
	inner, err := l.open()
	if err != nil {
		return nil, err
	}
	return inner.Accept()
}

// Close implements net.Listener.
func (l *lateListener) Close() error {
	inner, err := l.open()
	if err != nil {
		return err
	}
	return inner.Close()
}

// Addr implements net.Listener.
func (l *lateListener) Addr() net.Addr {
	inner, err := l.open()
	if err != nil {
		return &net.TCPAddr{}
	}
	return inner.Addr()
}

// metricsHandler serves metrics, and debug endpoints if they are enabled or guarded. With a guard it serves only
// clients that the guard admits; only they can set the log level.
func metricsHandler(o *ManagerOptions) (http.Handler, error) {
	handlers := map[string]http.Handler{}
	if profiles := profiles(o); profiles || o.Guard != nil {
		var err error
		if handlers, err = debugHandlers(o.Configuration); err != nil {
			return nil, fmt.Errorf("showing the configuration: %w", err)
		}
	}
	handlers["/metrics"] = promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	if level, found := levelOf(o.Log); found && o.Guard != nil {
		handlers[LogLevelPath] = &logLevel{level, o.Log}
	}
	mux := http.NewServeMux()
	for path, handler := range handlers {
		if o.Guard != nil {
			handler = o.Guard.Wrap(handler)
		}
		mux.Handle(path, handler)
	}
	return mux, nil
}

// certificate is the certificate of the serving ports. It is read again when its files change, once the webhook
// server runs.
type certificate struct {
	dir       string
	isDefault bool
	watcher   func() (*certwatcher.CertWatcher, error)
}

// mayLack reports whether the folder may be without a certificate: it is the default one, or exists, such as that of
// an optional Secret.
func (c *certificate) mayLack() bool {
	_, err := os.Stat(c.dir)
	return err == nil || c.isDefault
}

// newCertificate returns the certificate in a folder; the default folder is controller-runtime's.
func newCertificate(dir string) *certificate {
	isDefault := dir == ""
	if isDefault {
		dir = filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
	}
	return &certificate{dir, isDefault, sync.OnceValues(func() (*certwatcher.CertWatcher, error) {
		certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
		watcher, err := certwatcher.New(certificate, key)
		if err != nil {
			err = fmt.Errorf("reading the certificate %s and its key %s (server.webhooks.tls.serverCertDir): %w", certificate, key, err)
		}
		return watcher, err
	})}
}

// config returns a TLS configuration with the certificate.
func (c *certificate) config() *tls.Config {
	return &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		watcher, err := c.watcher()
		if err != nil {
			return nil, err
		}
		return watcher.GetCertificate(hello)
	}}
}
