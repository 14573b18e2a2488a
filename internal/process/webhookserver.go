package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/espalier-project/espalier/internal/endpoint"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
)

// webhookServer is controller-runtime's server of webhooks with other connections: in controller-runtime all requests
// of an API server share a window of 1 MiB, and it waits forever for clients that do not read a response.
type webhookServer struct {
	webhook.Server
	server  *http.Server
	address string
	secure  *certificate
	// clientCAFile is the file with the CAs of clients; empty means that clients need no certificate.
	clientCAFile string
	log          logr.Logger
	// needed is set if there are handlers, or if the metrics use the same certificate.
	needed        bool
	started, idle atomic.Bool
}

func newWebhookServer(o *ManagerOptions, secure *certificate) (*webhookServer, error) {
	mux, headers := http.NewServeMux(), endpoint.HeaderBytes
	if o.Guard != nil {
		headers = endpoint.TokenHeaderBytes // Clients of debug pages send tokens.
	}
	server, err := endpoint.NewServer(mux, headers)
	if err != nil {
		return nil, err
	}
	return &webhookServer{
		Server: webhook.NewServer(webhook.Options{WebhookMux: mux}), server: server,
		address: net.JoinHostPort(o.Webhooks.BindAddress, strconv.Itoa(o.Webhooks.Port)), secure: secure, clientCAFile: o.Webhooks.TLS.ClientCAFile,
		log: o.Log.WithName("webhook-server"), needed: o.Guard != nil,
	}, nil
}

// Register implements webhook.Server. If clients need a certificate, only handlers that require a token serve clients
// without one.
func (s *webhookServer) Register(path string, handler http.Handler) {
	s.needed = true
	if _, guarded := handler.(guard.Guarded); s.clientCAFile != "" && !guarded {
		handler = certified(handler)
	}
	s.Server.Register(path, handler)
}

// certified returns a handler for clients whose certificate was verified in the TLS handshake.
func certified(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.TLS == nil || len(request.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate is required", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, request)
	})
}

// verifyClients verifies the certificates of clients with the CAs in the file at the time of the handshake. A
// handshake without a certificate succeeds, for readiness probes and for handlers that require a token. Sessions are
// not resumed, because they could outlast a CA.
func (s *webhookServer) verifyClients(ctx context.Context, config *tls.Config) error {
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", s.clientCAFile)
	if err != nil {
		return fmt.Errorf("reading the CA of clients: %w", err)
	}
	go authorities.Run(ctx, 1)
	config.SessionTicketsDisabled = true
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := config.Clone()
		options, _ := authorities.VerifyOptions()
		now.GetConfigForClient, now.ClientAuth, now.ClientCAs = nil, tls.VerifyClientCertIfGiven, options.Roots
		return now, nil
	}
	return nil
}

// Start implements webhook.Server. Without a certificate and without handlers it serves nothing (PRC-40), but a
// configured folder must exist.
func (s *webhookServer) Start(ctx context.Context) error {
	certificates, err := s.secure.watcher()
	if errors.Is(err, fs.ErrNotExist) && !s.needed && s.secure.mayLack() {
		s.log.Info("Serving no webhooks: none is switched on, and there is no certificate")
		s.idle.Store(true)
		<-ctx.Done()
		return nil
	}
	if err != nil {
		return err
	}
	config := s.secure.config()
	if s.clientCAFile != "" {
		if err := s.verifyClients(ctx, config); err != nil {
			return err
		}
	}
	listener, err := tls.Listen("tcp", s.address, config)
	if err != nil {
		return fmt.Errorf("server.webhooks.port: %w", err)
	}
	s.started.Store(true)
	go func() {
		if err := certificates.Start(ctx); err != nil {
			s.log.Error(err, "Certificates are not read again")
		}
	}()
	return endpoint.Serve(ctx, listener, s.server, GracePeriod)
}

// StartedChecker implements webhook.Server. Its check is a TLS handshake.
func (s *webhookServer) StartedChecker() healthz.Checker {
	return func(request *http.Request) error {
		if s.idle.Load() {
			return nil
		}
		if !s.started.Load() {
			return fmt.Errorf("webhook server has not been started yet")
		}
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // This checks that it responds, not its identity.
		connection, err := dialer.DialContext(request.Context(), "tcp", s.address)
		if err != nil {
			return fmt.Errorf("webhook server is not reachable: %w", err)
		}
		return connection.Close()
	}
}
