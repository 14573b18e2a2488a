package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/gen/gardenproto"
	"github.com/espalier-project/espalier/test/gen/landscape"
)

// Streamed is a garden of any size that is only followed: each object is kept in the form that a stream has it in, JSON or Protocol Buffers, so
// that 333,000 of them take a gigabyte, and a stream costs this process no more than its bytes. Of requests it knows streams that begin with all that there
// is, as client-go's reflectors ask for, and single reads, which find nothing.
type Streamed struct {
	*Garden
	stop func()
	// protobuf is nil for JSON.
	protobuf *gardenproto.Encoder

	mu       sync.Mutex
	version  int
	lines    map[string][][]byte
	places   map[string]int
	versions map[string]string
	streams  map[string]map[chan []byte]bool
	// Objects is how many there are, Bytes how long they are in that form.
	Objects, Bytes int
}

// pending is how many events a stream may lag behind before it is ended.
const pending = 4096

// StartStreamed starts such a garden, filled with a landscape. With protobuf it speaks Protocol Buffers for all kinds, as kube-apiserver and
// gardener-apiserver do with clients that read them.
func StartStreamed(dir string, objects landscape.Options, protobuf bool) (*Streamed, error) {
	prepared, err := cluster.Prepare(cluster.Options{Name: "garden", Dir: dir})
	if err != nil {
		return nil, err
	}
	s := &Streamed{lines: map[string][][]byte{}, places: map[string]int{}, versions: map[string]string{}, streams: map[string]map[chan []byte]bool{}}
	if protobuf {
		if s.protobuf, err = gardenproto.New(); err != nil {
			return nil, err
		}
	}
	for _, k := range gardenKinds {
		s.versions[k.plural] = k.String()
	}
	if err := objects.Generate(func(object landscape.Object) error {
		s.Objects++
		Complete(object, s.Objects)
		return s.Put(object)
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

// Put creates or replaces an object, and tells all who follow it.
func (s *Streamed) Put(object landscape.Object) error {
	metadata, _ := object.Content["metadata"].(map[string]any)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	raw, err := s.encode(object.Content)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s/%v/%v", object.Resource, metadata["namespace"], metadata["name"])
	kind := "MODIFIED"
	place, found := s.places[key]
	if !found {
		kind, place = "ADDED", len(s.lines[object.Resource])
		s.places[key] = place
		s.lines[object.Resource] = append(s.lines[object.Resource], nil)
	}
	s.Bytes += len(raw) - len(s.lines[object.Resource][place])
	s.lines[object.Resource][place] = raw
	event, err := s.event(kind, raw)
	if err != nil {
		return err
	}
	for stream := range s.streams[object.Resource] {
		select {
		case stream <- event:
		default: // It is too slow.
			delete(s.streams[object.Resource], stream)
			close(stream)
		}
	}
	return nil
}

// encode returns an object in the form of the streams.
func (s *Streamed) encode(content map[string]any) ([]byte, error) {
	if s.protobuf == nil {
		return json.Marshal(content)
	}
	message, err := s.protobuf.Message(content)
	if err != nil {
		return nil, err
	}
	return gardenproto.Object(content["apiVersion"].(string), content["kind"].(string), message)
}

// event returns an event of a stream.
func (s *Streamed) event(kind string, raw []byte) ([]byte, error) {
	if s.protobuf == nil {
		return fmt.Appendf(make([]byte, 0, len(raw)+40), "{\"type\":%q,\"object\":%s}\n", kind, raw), nil
	}
	return gardenproto.Event(kind, raw)
}

// bookmark returns one; annotations may be nil.
func (s *Streamed) bookmark(resource string, version int, annotations map[string]any) ([]byte, error) {
	metadata := map[string]any{"resourceVersion": strconv.Itoa(version)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	raw, err := s.encode(map[string]any{"kind": s.kindOf(resource), "apiVersion": s.versionOf(resource), "metadata": metadata})
	if err != nil {
		return nil, err
	}
	return s.event("BOOKMARK", raw)
}

// follow returns all objects of a resource, the version of that, and the events from then on.
func (s *Streamed) follow(resource string) (all [][]byte, version int, events chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events = make(chan []byte, pending)
	if s.streams[resource] == nil {
		s.streams[resource] = map[chan []byte]bool{}
	}
	s.streams[resource][events] = true
	return append([][]byte(nil), s.lines[resource]...), s.version, events
}

func (s *Streamed) leave(resource string, events chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams[resource], events)
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
	if s.protobuf != nil {
		if !strings.Contains(request.Header.Get("Accept"), "application/vnd.kubernetes.protobuf") {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	}
	all, version, events := s.follow(resource)
	defer s.leave(resource, events)
	flush := http.NewResponseController(w).Flush
	if request.URL.Query().Get("sendInitialEvents") == "true" && s.begin(w, resource, all, version) != nil {
		return
	}
	bookmarks := time.NewTicker(30 * time.Second)
	defer bookmarks.Stop()
	for {
		if flush() != nil {
			return
		}
		var event []byte
		var err error
		open := true
		select {
		case <-request.Context().Done():
			return
		case <-bookmarks.C:
			s.mu.Lock()
			version = s.version
			s.mu.Unlock()
			event, err = s.bookmark(resource, version, nil)
		case event, open = <-events:
		}
		if !open || err != nil {
			return
		}
		if _, err := w.Write(event); err != nil {
			return
		}
	}
}

// begin writes all objects that there are, and the bookmark that ends them.
func (s *Streamed) begin(w io.Writer, resource string, all [][]byte, version int) error {
	for _, raw := range all {
		event, err := s.event("ADDED", raw)
		if err != nil {
			return err
		}
		if _, err := w.Write(event); err != nil {
			return err
		}
	}
	end, err := s.bookmark(resource, version, map[string]any{metav1.InitialEventsAnnotationKey: "true"})
	if err == nil {
		_, err = w.Write(end)
	}
	return err
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
