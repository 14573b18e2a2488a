package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint"
)

// webhookServer is controller-runtime's server of webhooks, but for the connections: those of controller-runtime share a window of 1 MiB between
// all requests of an API server, and wait for ever for clients that read no answer.
type webhookServer struct {
	webhook.Server
	server  *http.Server
	address string
	certDir string
	log     logr.Logger
	started atomic.Bool
}

func newWebhookServer(o *shared.HTTPSServer, log logr.Logger) (*webhookServer, error) {
	mux := http.NewServeMux()
	server, err := endpoint.NewServer(mux)
	if err != nil {
		return nil, err
	}
	return &webhookServer{
		Server: webhook.NewServer(webhook.Options{WebhookMux: mux}), server: server,
		address: net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port)), certDir: o.TLS.ServerCertDir, log: log.WithName("webhook-server"),
	}, nil
}

// Start implements webhook.Server.
func (s *webhookServer) Start(ctx context.Context) error {
	certificates, err := certwatcher.New(filepath.Join(s.certDir, "tls.crt"), filepath.Join(s.certDir, "tls.key"))
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", s.address, &tls.Config{NextProtos: []string{"h2"}, GetCertificate: certificates.GetCertificate, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	s.started.Store(true)
	go func() {
		if err := certificates.Start(ctx); err != nil {
			s.log.Error(err, "Certificates are not read again")
		}
	}()
	return endpoint.Serve(ctx, listener, s.server, GracePeriod)
}

// StartedChecker implements webhook.Server: it asks for a TLS handshake.
func (s *webhookServer) StartedChecker() healthz.Checker {
	return func(request *http.Request) error {
		if !s.started.Load() {
			return fmt.Errorf("webhook server has not been started yet")
		}
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // Whether it answers, not who it is.
		connection, err := dialer.DialContext(request.Context(), "tcp", s.address)
		if err != nil {
			return fmt.Errorf("webhook server is not reachable: %w", err)
		}
		return connection.Close()
	}
}
