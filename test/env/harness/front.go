package harness

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Front stands before an API server: it refuses every request that is not a GET, and counts the others.
type Front struct {
	// Kubeconfig is the path of one that leads here, with all that its server may do.
	Kubeconfig string

	mu      sync.Mutex
	sent    []string
	refused []string
}

// NewFront begins to stand before an API server, until the process ends.
func NewFront(dir, name string, config *rest.Config) (*Front, error) {
	at, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	f := &Front{Kubeconfig: filepath.Join(dir, name+".kubeconfig")}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport, proxy.FlushInterval = transport, -1
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.admits(r) {
			http.Error(w, "this API server takes no writes", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	return f, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: "http://" + listener.Addr().String()}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {}},
		Contexts: map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}}, CurrentContext: name,
	}, f.Kubeconfig)
}

func (f *Front) admits(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodGet {
		return true
	}
	f.refused = append(f.refused, r.Method+" "+r.URL.Path)
	return false
}

// Taken returns what was sent since it was asked last.
func (f *Front) Taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = nil
	return sent
}

// Refused are the requests that were refused.
func (f *Front) Refused() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.refused)
}
