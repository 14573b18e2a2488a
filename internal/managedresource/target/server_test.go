package target

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/managedresource/objects"
	"github.com/espalier-project/espalier/test/must"
)

// server is an API server as far as this package uses one: kinds that come and go, lists in pages, and watches.
type server struct {
	mu      sync.Mutex
	changed *sync.Cond
	version int
	kinds   map[schema.GroupVersionKind]*served
	// refused are the verbs that are forbidden.
	refused map[string]bool
	// requests are counted by verb.
	requests map[string]int
	history  []event
	// muted has watches tell nothing of what happens.
	muted bool
	// onList is called before each page of a list is answered, nil for nothing.
	onList func(gvk schema.GroupVersionKind, from int)
	// selective is true if label selectors are heeded, as far as they are one label with one value.
	selective bool
	// compacted is the version before which watches can't begin.
	compacted int
	// restarts ends the watches that began before; open are those that last.
	restarts, open int
	// before is the state of ConfigMaps at the begin of the latest gap, and so many lists are still answered with it.
	before      map[string]map[string]any
	beforeAt    int
	listsBehind int
}

type served struct {
	resource   string
	namespaced bool
	objects    map[string]map[string]any // by namespace/name
	// verbs are what discovery says of the kind, nil if it says nothing.
	verbs []any
}

type event struct {
	kind    schema.GroupVersionKind
	name    string
	version int
	object  map[string]any
	// muted is true for one that no watch reports.
	muted bool
}

var (
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	widgets    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	oldWidgets = widgets.GroupKind().WithVersion("v1beta1")
)

func newServer(t testing.TB) (*server, *Client) {
	t.Helper()
	s := &server{version: 1, kinds: map[schema.GroupVersionKind]*served{}, refused: map[string]bool{}, requests: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	s.serve(configMaps, "configmaps", true)
	s.serve(widgets, "widgets", true)
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	t.Cleanup(listener.CloseClientConnections)
	client, err := NewClient(&rest.Config{Host: listener.URL, QPS: 100, Burst: 130}, listener.Client(), NewMetrics(prometheus.NewRegistry()))
	must.Succeed(t, err)
	return s, client
}

func (s *server) serve(gvk schema.GroupVersionKind, resource string, namespaced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[gvk] = &served{resource: resource, namespaced: namespaced, objects: map[string]map[string]any{}}
}

func (s *server) withdraw(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, gvk)
	s.changed.Broadcast()
}

func (s *server) refuse(verb string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[verb] = refused
	s.changed.Broadcast()
}

func (s *server) count(verbs ...string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := 0
	for verb, n := range s.requests {
		if len(verbs) == 0 || slices.Contains(verbs, verb) {
			sum += n
		}
	}
	return sum
}

// put writes an object; change says what of it differs.
func (s *server) put(gvk schema.GroupVersionKind, namespace, name string, change map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kinds[gvk]
	s.version++
	key := namespace + "/" + name
	metadata := map[string]any{"name": name, "uid": fmt.Sprintf("%s-%s-%d", gvk.Kind, key, s.version), "labels": map[string]any{"managed": "yes"}}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	if before := kind.objects[key]; before != nil {
		metadata["uid"] = before["metadata"].(map[string]any)["uid"]
	}
	metadata["resourceVersion"] = strconv.Itoa(s.version)
	apiVersion, k := gvk.ToAPIVersionAndKind()
	object := map[string]any{"apiVersion": apiVersion, "kind": k, "metadata": metadata}
	for key, value := range change {
		object[key] = value
	}
	kind.objects[key] = object
	s.history = append(s.history, event{gvk, "MODIFIED", s.version, object, s.muted})
	s.changed.Broadcast()
	return object
}

func (s *server) delete(gvk schema.GroupVersionKind, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	object := withVersion(s.kinds[gvk].objects[namespace+"/"+name], s.version)
	delete(s.kinds[gvk].objects, namespace+"/"+name)
	s.history = append(s.history, event{gvk, "DELETED", s.version, object, s.muted})
	s.changed.Broadcast()
}

func withVersion(object map[string]any, version int) map[string]any {
	content, _ := json.Marshal(object)
	var copied map[string]any
	_ = json.Unmarshal(content, &copied)
	copied["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(version)
	return copied
}

// awaitWatches returns when so many watches are open. Between its list and its watch, a client cannot notice a restore.
func (s *server) awaitWatches(t testing.TB, want int) {
	t.Helper()
	eventually(t, "watched", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.open == want
	})
}

// restore turns the versions back, forgets what was later, and ends all watches.
func (s *server) restore(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.history, s.compacted = version, nil, version
	s.restarts++
	s.changed.Broadcast()
}

// cut ends all watches.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarts++
	s.changed.Broadcast()
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func status(w http.ResponseWriter, code int, reason, name string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "details": map[string]any{"name": name}})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	gv := schema.GroupVersion{Version: parts[1]}
	rest := parts[2:]
	if parts[0] == "apis" {
		gv, rest = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	}
	if len(rest) == 0 {
		s.discover(w, gv)
		return
	}
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	s.mu.Lock()
	var gvk schema.GroupVersionKind
	var kind *served
	for k, candidate := range s.kinds {
		if k.GroupVersion() == gv && candidate.resource == rest[0] {
			gvk, kind = k, candidate
		}
	}
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}[r.Method]
	if verb == "get" && len(rest) == 1 {
		verb = "list"
		if r.URL.Query().Get("watch") != "" {
			verb = "watch"
		}
	}
	s.requests[verb]++
	refused := s.refused[verb]
	s.mu.Unlock()
	acrossNamespaces := verb == "list" || verb == "watch"
	switch {
	case kind == nil, !kind.namespaced && namespace != "", kind.namespaced && namespace == "" && !acrossNamespaces:
		http.Error(w, "404 page not found", http.StatusNotFound)
	case refused:
		status(w, http.StatusForbidden, "Forbidden", "")
	case verb == "watch":
		s.watch(w, r, gvk)
	case verb == "list":
		s.list(w, r, gvk, namespace)
	case verb == "create":
		var object map[string]any
		_ = json.NewDecoder(r.Body).Decode(&object)
		name := object["metadata"].(map[string]any)["name"].(string)
		delete(object, "metadata")
		answer(w, http.StatusCreated, shaped(r, s.put(gvk, namespace, name, object)))
	default:
		s.mu.Lock()
		object := kind.objects[namespace+"/"+rest[1]]
		s.mu.Unlock()
		if object == nil {
			status(w, http.StatusNotFound, "NotFound", rest[1])
			return
		}
		answer(w, http.StatusOK, shaped(r, object))
	}
}

func (s *server) discover(w http.ResponseWriter, gv schema.GroupVersion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests["discover"]++
	resources := []any{}
	for gvk, kind := range s.kinds {
		if gvk.GroupVersion() == gv {
			resources = append(resources, map[string]any{"name": kind.resource, "namespaced": kind.namespaced, "kind": gvk.Kind, "verbs": kind.verbs})
		}
	}
	if len(resources) == 0 {
		status(w, http.StatusNotFound, "NotFound", "")
		return
	}
	answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv.String(), "resources": resources})
}

// shaped is the metadata of an object if that is asked for.
func shaped(r *http.Request, object map[string]any) map[string]any {
	if !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		return object
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]}
}

// selects reports whether an object has the label that a request asks for.
func (s *server) selects(r *http.Request, object map[string]any) bool {
	key, value, asked := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	if !s.selective || !asked {
		return true
	}
	labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
	return labels[key] == value
}

func (s *server) list(w http.ResponseWriter, r *http.Request, gvk schema.GroupVersionKind, namespace string) {
	if s.onList != nil {
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		s.onList(gvk, from)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	objects, version := s.kinds[gvk].objects, s.version
	if gvk == configMaps && s.listsBehind > 0 {
		s.listsBehind--
		objects, version = s.before, s.beforeAt
	}
	names := make([]string, 0, len(objects))
	for name := range objects {
		if (namespace == "" || strings.HasPrefix(name, namespace+"/")) && s.selects(r, objects[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	end := len(names)
	next := ""
	if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && begin+limit < end {
		end = begin + limit
		next = strconv.Itoa(end)
	}
	items := make([]any, 0, end-begin)
	for _, name := range names[begin:end] {
		items = append(items, shaped(r, objects[name]))
	}
	apiVersion, k := gvk.ToAPIVersionAndKind()
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		apiVersion, k = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	answer(w, http.StatusOK, map[string]any{"kind": k + "List", "apiVersion": apiVersion, "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version), "continue": next}})
}

func (s *server) watch(w http.ResponseWriter, r *http.Request, gvk schema.GroupVersionKind) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		w.(http.Flusher).Flush()
	}
	go func() {
		<-r.Context().Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	defer func() { s.open-- }()
	// A watch from a version that is still to come is accepted, and reports nothing until then, as a real API server does.
	for began := s.restarts; r.Context().Err() == nil && s.kinds[gvk] != nil && !s.refused["watch"] && s.restarts == began; {
		if from < s.compacted {
			send("ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410})
			return
		}
		for _, e := range s.history {
			if e.kind == gvk && e.version > from && !e.muted && s.selects(r, e.object) {
				send(e.name, shaped(r, e.object))
			}
		}
		from = max(from, s.version)
		s.changed.Wait()
	}
}

// gap cuts all watches, and does what they are not told of and can't go on from; uncovered says that they are cut. Lists and watches work again once
// end is called.
func (s *server) gap(t testing.TB, uncovered func() bool, do func()) (end func()) {
	t.Helper()
	s.refuse("watch", true)
	s.refuse("list", true)
	eventually(t, "not covered", uncovered)
	s.mu.Lock()
	s.muted, s.before, s.beforeAt = true, maps.Clone(s.kinds[configMaps].objects), s.version
	s.mu.Unlock()
	do()
	s.mu.Lock()
	s.muted, s.compacted = false, s.version
	s.mu.Unlock()
	return func() {
		s.refuse("list", false)
		s.refuse("watch", false)
	}
}

// started returns watches of the server that run until the end of the test.
func started(t testing.TB, client *Client, l *objects.Tracker) *Watches {
	t.Helper()
	w := NewWatches(client, l, WatchOptions{LabelSelector: "managed=yes", Log: logr.Discard()})
	return w
}

func run(t testing.TB, w *Watches) {
	t.Helper()
	var running sync.WaitGroup
	running.Go(func() { _ = w.Start(t.Context()) })
	t.Cleanup(running.Wait)
}

func refTo(gvk schema.GroupVersionKind, namespace, name string) objects.Ref {
	return objects.Ref{ID: objects.NewID(gvk.GroupKind(), namespace, name), Version: gvk.Version}
}

func entryOf(ref objects.Ref) resourcesv1alpha1.ObjectReference {
	return resourcesv1alpha1.ObjectReference{ObjectReference: corev1.ObjectReference{
		APIVersion: ref.GVK().GroupVersion().String(), Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
	}}
}

// verify says that an object, as it is on record, is as it should be.
func verify(l *objects.Tracker, owner objects.Owner, ref objects.Ref) {
	known := l.Get(ref.ID)
	l.MarkInSync(owner, objects.Observation{ID: ref.ID, UID: known.UID, ResourceVersion: known.ResourceVersion, Since: known.Revision, Desired: 1})
}

// readFrom returns an object as a list had it, else as a read finds it.
func readFrom(ctx context.Context, w *Watches, ref objects.Ref) (*unstructured.Unstructured, error) {
	if listed := w.FromList(ctx, ref); listed != nil {
		return listed, nil
	}
	return w.client.Get(ctx, ref.GVK(), ref.Namespace, ref.Name)
}

// inSync reports whether an object is known to be in sync with a desired state.
func inSync(l *objects.Tracker, id objects.ID, desired uint64) bool {
	recorded := l.Get(id)
	return recorded.InSync && recorded.Desired == desired
}
