package process

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/guard"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// authority signs certificates of clients.
type authority struct {
	pem  []byte
	pair tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	key, der := signed(t, template, nil)
	parsed, err := x509.ParseCertificate(der)
	must.Succeed(t, err)
	return &authority{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: parsed}}
}

// client returns a certificate for a usage.
func (a *authority) client(t *testing.T, usage x509.ExtKeyUsage) *tls.Certificate {
	t.Helper()
	key, der := signed(t, &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{usage}}, a)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func signed(t *testing.T, template *x509.Certificate, by *authority) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Succeed(t, err)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.pair.Leaf, by.pair.PrivateKey.(*ecdsa.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	must.Succeed(t, err)
	return key, der
}

// webhooksServed starts a server of webhooks; it returns the folder with its files, the check of readiness, and a GET.
func webhooksServed(t *testing.T, clientCA []byte) (dir string, ready func() error, get func(path string, with *tls.Certificate) string) {
	t.Helper()
	dir = t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	must.Succeed(t, err)
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key}
	o := &shared.HTTPSServer{Server: shared.Server{BindAddress: "127.0.0.1", Port: freePort(t)}, TLS: shared.TLSServer{ServerCertDir: dir}}
	if clientCA != nil {
		files["client-ca.crt"] = clientCA
		o.TLS.ClientCAFile = filepath.Join(dir, "client-ca.crt")
	}
	for name, content := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	server, err := newWebhookServer(&ManagerOptions{Webhooks: o, Log: logr.Discard()}, newCertificate(dir))
	must.Succeed(t, err)
	guard, err := Guard(&shared.Debugging{Authentication: shared.Authentication{Enabled: true}}, reviewer(t, "good", map[string]bool{"get /debug/page": true}), logr.Discard())
	must.Succeed(t, err)
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })
	server.Register("/webhooks/a", served)
	server.Register("/debug/page", guard.Wrap(served))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		expect.Succeed(t, <-ended)
	})
	ready = func() error {
		return server.StartedChecker()((&http.Request{}).WithContext(t.Context()))
	}
	eventually(t, "the server does not start", func() bool { return ready() == nil })
	return dir, ready, func(path string, with *tls.Certificate) string {
		t.Helper()
		config := &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if with == nil {
				return &tls.Certificate{}, nil
			}
			return with, nil
		}}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+server.address+path, nil)
		must.Succeed(t, err)
		if path == "/debug/page" {
			request.Header.Set("Authorization", "Bearer good")
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return "no connection"
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(response.Body)
		return strings.TrimSpace(http.StatusText(response.StatusCode) + ": " + string(text))
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatal(what)
	}
}

// TestClientCertificates: with a CA of clients, authorizers and webhooks are for API servers with a certificate of it; readiness and handlers that ask for
// a token go on as before, and another CA in the file counts at once.
func TestClientCertificates(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	dir, ready, get := webhooksServed(t, first.pem)
	api, later := first.client(t, x509.ExtKeyUsageClientAuth), second.client(t, x509.ExtKeyUsageClientAuth)
	for name, c := range map[string]struct {
		path string
		with *tls.Certificate
		want string
	}{
		"CCA-1/its certificate":                 {"/webhooks/a", api, "OK: served"},
		"CCA-2/no certificate":                  {"/webhooks/a", nil, "Unauthorized: a client certificate is required"},
		"CCA-2/a certificate of another CA":     {"/webhooks/a", later, "no connection"},
		"CCA-2/the certificate of a server":     {"/webhooks/a", first.client(t, x509.ExtKeyUsageServerAuth), "no connection"},
		"CCA-3/a token without a certificate":   {"/debug/page", nil, "OK: served"},
		"CCA-3/a token and its certificate":     {"/debug/page", api, "OK: served"},
		"CCA-2/nothing is at an unknown path":   {"/webhooks/b", nil, "Not Found: 404 page not found"},
		"CCA-3/a token and another authority's": {"/debug/page", later, "no connection"},
	} {
		expect.Equal(t, get(c.path, c.with), c.want, "%s", name)
	}
	expect.Succeed(t, ready(), "CCA-4: readiness fails without a certificate")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "client-ca.crt"), second.pem, 0o600))
	eventually(t, "CCA-5: the new CA does not count", func() bool { return get("/webhooks/a", later) == "OK: served" })
	expect.Equal(t, get("/webhooks/a", api), "no connection", "CCA-5: a certificate of the former CA")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "client-ca.crt"), []byte("nonsense"), 0o600))
	expect.Equal(t, get("/webhooks/a", later), "OK: served", "CCA-5: with an unreadable file")
}

// TestNoClientCertificates: without a CA of clients nobody needs a certificate.
func TestNoClientCertificates(t *testing.T) {
	_, _, get := webhooksServed(t, nil)
	expect.Equal(t, get("/webhooks/a", nil), "OK: served", "CCA-1")
}

// PRC-40, PRC-56: a process needs no certificate while nothing is served with it.
func TestCertificateOnlyWhereOneIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		register, guarded bool
		dir, want         string
	}{
		"PRC-40: no webhook":                           {},
		"PRC-40: no webhook, the default folder":       {dir: "default"},
		"PRC-40: no webhook, no folder":                {dir: "none", want: "no such file"},
		"PRC-40: a webhook":                            {register: true, want: "no such file"},
		"PRC-40: no webhook, metrics have certificate": {guarded: true, want: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &ManagerOptions{Webhooks: &shared.HTTPSServer{Server: shared.Server{BindAddress: "127.0.0.1", Port: freePort(t)}}, Log: logr.Discard()}
			if c.guarded {
				o.Guard = &guard.Guard{}
			}
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			dir := map[string]string{"": temporary, "none": filepath.Join(temporary, "none")}[c.dir]
			expect.Equal(t, newCertificate("").dir, filepath.Join(temporary, "k8s-webhook-server", "serving-certs"), "the default folder")
			server, err := newWebhookServer(o, newCertificate(dir))
			must.Succeed(t, err)
			if c.register {
				server.Register("/webhooks/a", http.NotFoundHandler())
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- server.Start(ctx) }()
			ready := func() bool { return server.StartedChecker()((&http.Request{}).WithContext(t.Context())) == nil }
			if c.want == "" {
				eventually(t, "PRC-56: the check does not succeed", ready)
				cancel()
			}
			if err := <-ended; c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || ready()) {
				t.Errorf("ended with %v, ready: %t", err, ready())
			}
			cancel()
		})
	}
}

// PRC-40 (messages): a certificate without its key names both files, and a port that is taken its key of the configuration.
func TestFaultsOfPorts(t *testing.T) {
	dir := t.TempDir()
	for file, of := range map[string]string{"tls.crt": "a", "tls.key": "b"} {
		certificate, key, err := cert.GenerateSelfSignedCertKey(of, nil, nil)
		must.Succeed(t, err)
		must.Succeed(t, os.WriteFile(filepath.Join(dir, file), map[string][]byte{"tls.crt": certificate, "tls.key": key}[file], 0o600))
	}
	_, err := newCertificate(dir).watcher()
	for _, want := range []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), "private key does not match", "server.webhooks.tls.serverCertDir"} {
		expect.ErrorContains(t, err, want, "PRC-40: %v does", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer func() { _ = taken.Close() }()
	server, err := newPort("metrics", "server.metrics.port", taken.Addr().String(), http.NotFoundHandler(), nil)
	must.Succeed(t, err)
	if err := server.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "server.metrics.port: ") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("PRC-40: %v", err)
	}
}
