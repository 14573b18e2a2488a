package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/fake"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// Simulated is a cluster in this process: the API server in memory of test/simulation, served over TLS and HTTP/2. It is up at once, and its
// answers take as long as Latency says. It knows no rights: every client may do everything.
type Simulated struct {
	*cluster.Cluster
	// API is what is stored.
	API *fake.Server
	// Latency is the time that a request waits before it is carried out; nil means not at all. It is set before the first request.
	Latency func(*fake.Request) time.Duration
	// Late is how late the events of a watch arrive; nil means at once. It is set before the first request.
	Late func(*fake.Request) time.Duration
	// Answer answers requests in place of the API server if it returns true; nil answers none. It is set before the first request.
	Answer func(http.ResponseWriter, *http.Request) bool

	lock *sync.Mutex
	stop func()
}

// StartSimulated starts such a cluster.
func StartSimulated(name, dir string, kinds []*fake.Kind, namespaces ...string) (*Simulated, error) {
	prepared, err := cluster.Prepare(cluster.Options{Name: name, Dir: dir})
	if err != nil {
		return nil, err
	}
	s := &Simulated{Cluster: prepared, lock: &sync.Mutex{}}
	s.API = fake.New(s.lock, kinds, nil, namespaces...)
	s.API.QuietEnd = true
	if s.stop, err = serve(prepared, dir, s); err != nil {
		return nil, err
	}
	return s, nil
}

// serve serves a prepared cluster from this process, over TLS and HTTP/2, and returns what ends the server and all its connections.
func serve(prepared *cluster.Cluster, dir string, handler http.Handler) (stop func(), err error) {
	listener, err := net.Listen("tcp", strings.TrimPrefix(prepared.URL(), "https://"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() {
		_ = server.ServeTLS(listener, filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key"))
	}()
	return func() {
		cancel()
		_ = server.Close()
	}, nil
}

// StartSimulatedGarden starts a garden in memory, for an admission-controller that is run AsAdmin, and fills it with a landscape.
func StartSimulatedGarden(dir string, objects landscape.Options) (*Garden, *Simulated, error) {
	kinds := fake.BuiltIn()
	for _, k := range gardenKinds {
		kinds = append(kinds, fake.CustomKind(k.Group, k.Version, k.kind, k.plural, k.namespaced))
	}
	kinds = append(kinds, fake.BuiltInKind("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false))
	s, err := StartSimulated("garden", dir, kinds, "garden", "default")
	if err != nil {
		return nil, nil, err
	}
	if err := objects.Generate(func(object landscape.Object) error { return s.Put(object.Resource, object.Content) }); err != nil {
		s.Stop()
		return nil, nil, err
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		s.Stop()
		return nil, nil, err
	}
	return &Garden{Cluster: s.Cluster, REST: &rest.Config{Host: s.URL()}, Web: ports[0], dir: dir}, s, nil
}

// Stop ends the server and all its connections.
func (s *Simulated) Stop() {
	s.stop()
}

// Any reports whether there is an object of a resource that is as it is wanted. The object must not be changed.
func (s *Simulated) Any(resource string, wanted func(fake.Object) bool) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key, object := range s.API.AllLocked() {
		if key.Resource == resource && wanted(object) {
			return true
		}
	}
	return false
}

// Put creates an object, past all waits; its status is kept.
func (s *Simulated) Put(resource string, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	version, _ := content["apiVersion"].(string)
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	metadata, _ := content["metadata"].(map[string]any)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + resource
	if err := s.send(http.MethodPost, path, body); err != nil {
		return err
	}
	if status, found := content["status"]; found {
		patch, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			return err
		}
		name, _ := metadata["name"].(string)
		return s.send(http.MethodPatch, path+"/"+name+"/status", patch)
	}
	return nil
}

func (s *Simulated) send(method, path string, body []byte) error {
	request, err := http.NewRequest(method, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := (&fake.Transport{Server: s.API, By: "landscape"}).RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotFound && strings.HasSuffix(path, "/status") { // Not each kind has one.
		return nil
	}
	answer, err := io.ReadAll(response.Body)
	return errors.Join(err, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer))
}

// ServeHTTP implements http.Handler.
func (s *Simulated) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if s.Answer != nil && s.Answer(w, request) {
		return
	}
	switch request.URL.Path {
	case "/version":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
		return
	case "/healthz", "/livez", "/readyz":
		_, _ = io.WriteString(w, "ok")
		return
	}
	if err := asJSON(request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response, err := (&fake.Transport{Server: s.API, By: "client", Network: s}).RoundTrip(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	if response.ContentLength >= 0 {
		_, _ = io.Copy(w, response.Body)
		return
	}
	flush := http.NewResponseController(w).Flush
	_ = flush()
	for buffer := make([]byte, 64<<10); ; {
		n, err := response.Body.Read(buffer)
		if _, failed := w.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
		_ = flush()
	}
}

// Carry implements fake.Network.
func (s *Simulated) Carry(from *http.Request, r *fake.Request, do func() *http.Response) (*http.Response, error) {
	if s.Latency != nil {
		select {
		case <-time.After(s.Latency(r)):
		case <-from.Context().Done():
			return nil, from.Context().Err()
		}
	}
	return do(), nil
}

// Delay implements fake.Network.
func (s *Simulated) Delay(r *fake.Request) time.Duration {
	if s.Late == nil {
		return 0
	}
	return s.Late(r)
}

// asJSON replaces a body of Protocol Buffers, which the API server in memory does not read.
func asJSON(request *http.Request) error {
	if !strings.Contains(request.Header.Get("Content-Type"), "protobuf") {
		return nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	object, _, err := serializer.NewCodecFactory(Scheme()).UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return err
	}
	if body, err = json.Marshal(object); err != nil {
		return err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	return nil
}

// Patch changes an object, past all waits.
func (s *Simulated) Patch(resource, version, namespace, name string, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	return s.send(http.MethodPatch, path+"/namespaces/"+namespace+"/"+resource+"/"+name, body)
}

// Text returns a text of an object, as it is stored; empty if it is not there.
func (s *Simulated) Text(key fake.Key, path ...string) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return fake.Text(s.API.GetLocked(key), path...)
}
