package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/gen/gardenproto"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// Streamed is a garden of any size in which nothing changes: each object is kept as an event of Protocol Buffers, as gardener-apiserver sends it, so
// that 333,000 of them take a gigabyte, and a stream costs this process no more than its bytes. Of requests it knows streams that begin with all objects,
// as client-go's reflectors send them, and single reads, which find nothing.
type Streamed struct {
	*Garden
	stop     func()
	protobuf *gardenproto.Encoder
	events   map[string][][]byte
	versions map[string]string
	// Objects is their number.
	Objects int
}

// StartStreamed starts such a garden, filled with a landscape.
func StartStreamed(dir string, objects landscape.Options) (*Streamed, error) {
	prepared, err := cluster.Prepare(cluster.Options{Name: "garden", Dir: dir})
	if err != nil {
		return nil, err
	}
	s := &Streamed{events: map[string][][]byte{}, versions: map[string]string{}}
	if s.protobuf, err = gardenproto.New(); err != nil {
		return nil, err
	}
	for _, k := range gardenKinds {
		s.versions[k.plural] = k.String()
	}
	if err := objects.Generate(func(object landscape.Object) error {
		s.Objects++
		Complete(object, s.Objects)
		metadata, _ := object.Content["metadata"].(map[string]any)
		metadata["resourceVersion"] = strconv.Itoa(s.Objects)
		event, err := s.event("ADDED", object.Content)
		s.events[object.Resource] = append(s.events[object.Resource], event)
		return err
	}); err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s.Garden = &Garden{Cluster: prepared, REST: &rest.Config{Host: prepared.URL()}, Web: ports[0], dir: dir}
	if s.stop, err = serve(prepared, dir, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Stop ends the server and all its streams.
func (s *Streamed) Stop() {
	s.stop()
}

// event returns an event of a stream.
func (s *Streamed) event(kind string, content map[string]any) ([]byte, error) {
	message, err := s.protobuf.Message(content)
	if err != nil {
		return nil, err
	}
	raw, err := gardenproto.Object(content["apiVersion"].(string), content["kind"].(string), message)
	if err != nil {
		return nil, err
	}
	return gardenproto.Event(kind, raw)
}

// ServeHTTP implements http.Handler.
func (s *Streamed) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	switch {
	case request.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`)
	case request.URL.Query().Get("watch") == "true":
		s.stream(w, request, resource)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":%q,"details":{"name":%q}}`, request.URL.Path, resource)
	}
}

func (s *Streamed) stream(w http.ResponseWriter, request *http.Request, resource string) {
	if !strings.Contains(request.Header.Get("Accept"), "application/vnd.kubernetes.protobuf") {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		for _, event := range s.events[resource] {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
		end, err := s.event("BOOKMARK", map[string]any{"kind": s.kindOf(resource), "apiVersion": s.versionOf(resource), "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(s.Objects), "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
		}})
		if err != nil {
			return
		}
		if _, err := w.Write(end); err != nil {
			return
		}
	}
	if http.NewResponseController(w).Flush() == nil {
		<-request.Context().Done()
	}
}

func (s *Streamed) versionOf(resource string) string {
	if version := s.versions[resource]; version != "" {
		return version
	}
	if resource == "certificatesigningrequests" {
		return "certificates.k8s.io/v1"
	}
	return "v1"
}

func (s *Streamed) kindOf(resource string) string {
	for _, k := range gardenKinds {
		if k.plural == resource {
			return k.kind
		}
	}
	return map[string]string{
		"namespaces": "Namespace", "serviceaccounts": "ServiceAccount", "certificatesigningrequests": "CertificateSigningRequest", "leases": "Lease",
		"configmaps": "ConfigMap", "secrets": "Secret",
	}[resource]
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
