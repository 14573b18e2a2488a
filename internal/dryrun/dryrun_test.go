package dryrun

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// upstream is an API server with one ConfigMap, whose watches begin with lines of their own and stay open.
type upstream struct {
	t      *testing.T
	object string
	lines  chan string
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	expect.True(u.t, r.Method == http.MethodGet, "sent: %s %s", r.Method, r.URL)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Query().Get("watch") == "true":
		w.(http.Flusher).Flush()
		for {
			select {
			case line := <-u.lines:
				_, _ = io.WriteString(w, line+"\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	case r.URL.Path == "/api/v1/namespaces/n/configmaps/a":
		_, _ = io.WriteString(w, u.object)
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		_, _ = fmt.Fprintf(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"20"},"items":[%s]}`, u.object)
	case strings.HasSuffix(r.URL.Path, "/forbidden"):
		w.WriteHeader(http.StatusForbidden)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","code":404}`)
	}
}

const configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a","uid":"u","resourceVersion":"10","labels":{"l":"1"}},"data":{"k":"old","same":"s"}}`

type tester struct {
	*testing.T
	*Server
	client   *http.Client
	upstream *upstream
	url      string
}

func start(t *testing.T) *tester {
	t.Helper()
	u := &upstream{t: t, object: configMap, lines: make(chan string)}
	server := httptest.NewServer(u)
	s := New("target")
	client := &http.Client{Transport: s.Wrap(server.Client().Transport)}
	t.Cleanup(func() { client.CloseIdleConnections(); server.CloseClientConnections(); server.Close() })
	return &tester{t, s, client, u, server.URL}
}

// do sends a request and returns status and body.
func (t *tester) do(method, path, contentType, body string) (int, object) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, t.url+path, strings.NewReader(body))
	must.Succeed(t, err)
	r.Header.Set("Content-Type", contentType)
	answer, err := t.client.Do(r)
	must.Succeed(t, err)
	defer answer.Body.Close() //nolint:errcheck // It was read.
	found := object{}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil && answer.StatusCode < 400 {
		t.Fatal(err)
	}
	return answer.StatusCode, found
}

const (
	one   = "/api/v1/namespaces/n/configmaps/a"
	many  = "/api/v1/namespaces/n/configmaps"
	plain = "application/json"
	merge = "application/merge-patch+json"
)

func (t *tester) names() []string {
	t.Helper()
	_, list := t.do("GET", many+"?labelSelector=l", "", "")
	var names []string
	items, _ := list["items"].([]any)
	for _, item := range items {
		names = append(names, text(item.(object), "metadata", "name"))
	}
	return names
}

// CLI-8: writes are recorded and not sent, and what is read afterwards has them.
func TestWritesAreNotSent(t *testing.T) {
	s := start(t)
	if code, answer := s.do("PATCH", one, merge, `{"metadata":{"resourceVersion":"10"},"data":{"k":"new"}}`); code != 200 || text(answer, "data", "k") != "new" || versionOf(answer) != "11" {
		t.Errorf("patch: %d %v", code, answer)
	}
	if code, _ := s.do("PATCH", one, merge, `{"metadata":{"resourceVersion":"10"},"data":{"k":"late"}}`); code != http.StatusConflict {
		t.Errorf("a patch of the former version: %d", code)
	}
	_, answer := s.do("GET", one, "", "")
	expect.Equal(t, text(answer, "data", "k"), "new", "get: %v", answer)
	if code, _ := s.do("POST", many, plain, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","labels":{"l":"2"}}}`); code != http.StatusCreated {
		t.Errorf("create: %d", code)
	}
	if code, _ := s.do("POST", many, plain, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`); code != http.StatusConflict {
		t.Errorf("create what is there: %d", code)
	}
	expect.DeepEqual(t, s.names(), []string{"a", "b"})
	expect.Equal(t, expect.First(s.do("DELETE", one, plain, `{"preconditions":{"resourceVersion":"10"}}`)), http.StatusConflict,
		"delete the former version")
	expect.Equal(t, expect.First(s.do("DELETE", one, plain, `{"preconditions":{"uid":"u"}}`)), 200, "delete")
	expect.Equal(t, expect.First(s.do("GET", one, "", "")), http.StatusNotFound, "get what was deleted")
	expect.DeepEqual(t, s.names(), []string{"b"})
	want := []Write{
		{Cluster: "target", Verb: "patch", Resource: "configmaps", Namespace: "n", Name: "a", Fields: []string{"data.k"}},
		{Cluster: "target", Verb: "create", Resource: "configmaps", Namespace: "n", Name: "b"},
		{Cluster: "target", Verb: "delete", Resource: "configmaps", Namespace: "n", Name: "a"},
	}
	expect.DeepEqual(t, s.Writes(), want)
	// Somebody else has created it anew.
	s.upstream.object = strings.ReplaceAll(configMap, `"10"`, `"30"`)
	if _, answer := s.do("GET", one, "", ""); versionOf(answer) != "30" {
		t.Errorf("a later write of somebody else does not count: %v", answer)
	}
}

// CLI-8: an update that changes nothing keeps the version, and is a write without fields.
func TestUpdateWithoutChange(t *testing.T) {
	s := start(t)
	code, answer := s.do("PUT", one, plain, configMap)
	expect.True(t, code == 200 && versionOf(answer) == "10", "update: %d %v", code, answer)
	writes := s.Writes()
	expect.True(t, len(writes) == 1 && writes[0].Fields == nil, "%+v", writes)
}

// CLI-8: what has finalizers stays until the last one goes.
func TestFinalizers(t *testing.T) {
	s := start(t)
	s.upstream.object = strings.Replace(configMap, `"uid"`, `"finalizers":["f"],"uid"`, 1)
	s.do("DELETE", one, plain, "")
	_, answer := s.do("GET", one, "", "")
	expect.True(t, text(answer, "metadata", "deletionTimestamp") != "", "it does not wait: %v", answer)
	s.do("PATCH", one, merge, `{"metadata":{"finalizers":null}}`)
	expect.Equal(t, expect.First(s.do("GET", one, "", "")), http.StatusNotFound, "it is still there")
	expect.DeepEqual(t, s.Writes()[1].Fields, []string{"metadata.finalizers"})
}

// CLI-8: a watch reports writes that were not sent, and leaves out what they lie over.
func TestWatch(t *testing.T) {
	s := start(t)
	s.do("PATCH", one, merge, `{"data":{"k":"new"}}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+many+"?watch=true&labelSelector=l", nil)
	must.Succeed(t, err)
	answer, err := s.client.Do(r)
	must.Succeed(t, err)
	defer answer.Body.Close() //nolint:errcheck // It is read.
	events := bufio.NewScanner(answer.Body)
	next := func(want string) {
		t.Helper()
		var event struct {
			Type   string
			Object object
		}
		must.True(t, events.Scan(), "the watch ended: %v", events.Err())
		must.Succeed(t, json.Unmarshal(events.Bytes(), &event))
		expect.Equal(t, event.Type+" "+text(event.Object, "metadata", "name")+" "+versionOf(event.Object), want)
	}
	next("MODIFIED a 11")
	s.upstream.lines <- `{"type":"MODIFIED","object":` + configMap + `}` // Over which lies version 11.
	s.upstream.lines <- `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"20"}}}`
	next("BOOKMARK  20")
	s.do("POST", many, plain, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b","labels":{"l":"2"}}}`)
	next("ADDED b 21")
	s.do("PATCH", many+"/b", merge, `{"metadata":{"labels":null}}`)
	next("DELETED b 22")
	s.do("POST", many, plain, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"unlabeled"}}`)
	s.do("DELETE", one, plain, "")
	next("DELETED a 11")
}

// CLI-8: kinds that the pass defines itself are served here: discovery, reads, lists and watches.
func TestDefinitions(t *testing.T) {
	s := start(t)
	const all = "/apis/example.org/v1/namespaces/n/widgets"
	expect.Equal(t, expect.First(s.do("GET", "/apis/example.org/v1", "", "")), http.StatusNotFound, "before")
	_, crd := s.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", plain, `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"widgets.example.org"},
		"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true},{"name":"v2","served":false}]}}`)
	conditions, _ := crd["status"].(object)["conditions"].([]any)
	expect.Equal(t, len(conditions), 2, "it is not established: %v", crd)
	_, found := s.do("GET", "/apis/example.org/v1", "", "")
	resources, _ := found["resources"].([]any)
	expect.True(t, len(resources) == 1 && resources[0].(object)["kind"] == "Widget" && resources[0].(object)["namespaced"] == true,
		"discovery: %v", found)
	expect.Equal(t, expect.First(s.do("GET", "/apis/example.org/v2", "", "")), http.StatusNotFound,
		"a version that is not served")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+all+"?watch=true", nil)
	must.Succeed(t, err)
	watch, err := s.client.Do(r)
	must.Succeed(t, err)
	defer watch.Body.Close() //nolint:errcheck // It is read.
	code, answer := s.do("GET", all+"/w", "", "")
	expect.True(t, code == http.StatusNotFound && answer["kind"] == "Status", "before there is one: %d %v", code, answer)
	if code, _ := s.do("POST", all, plain, `{"kind":"Widget","apiVersion":"example.org/v1","metadata":{"name":"w"}}`); code != http.StatusCreated {
		t.Errorf("create: %d", code)
	}
	expect.Equal(t, expect.First(s.do("GET", all+"/w", "", "")), 200, "get")
	_, list := s.do("GET", all, "", "")
	expect.Equal(t, len(list["items"].([]any)), 1, "list: %v", list)
	if events := bufio.NewScanner(watch.Body); !events.Scan() || !strings.Contains(events.Text(), `"type":"ADDED"`) {
		t.Errorf("watch: %s", events.Text())
	}
}

// CLI-8: a read that failed makes the answer unknown, until it succeeds.
func TestTroubles(t *testing.T) {
	s := start(t)
	s.do("GET", "/api/v1/forbidden", "", "")
	s.do("GET", many, "", "")
	expect.Equal(t, fmt.Sprint(s.Troubles()), "[target cluster: list forbidden: 403 Forbidden]")
}

// CLI-8: tokens are neither issued nor reviewed.
func TestTokens(t *testing.T) {
	s := start(t)
	code, answer := s.do("POST", "/api/v1/namespaces/n/serviceaccounts/x/token", plain, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"expirationSeconds":600}}`)
	expect.True(t, code == http.StatusCreated && strings.Count(text(answer, "status", "token"), ".") == 2,
		"token: %d %v", code, answer)
	_, review := s.do("POST", "/apis/authentication.k8s.io/v1/tokenreviews", plain, `{"spec":{"token":"t","audiences":["a"]}}`)
	expect.DeepEqual(t, review["status"], object{"authenticated": true, "audiences": []any{"a"}}, "review: %v", review)
	expect.True(t, s.Assumed() == 1 && len(s.Writes()) == 1 && s.Writes()[0].Subresource == "token", "%d, %v", s.Assumed(), s.Writes())
}

func TestChanges(t *testing.T) {
	before := object{"metadata": object{"resourceVersion": "1", "labels": object{"a/b": "1"}}, "list": []any{object{"x": int64(1)}, "y"}, "empty": object{}}
	after := object{"metadata": object{"resourceVersion": "2", "labels": object{"a/b": "2"}}, "list": []any{object{"x": int64(2)}, "y"}, "more": []any{"z"}}
	want := []string{"list[0].x", `metadata.labels["a/b"]`, "more"}
	expect.DeepEqual(t, changes(before, after), want)
}

func TestCause(t *testing.T) {
	log := Tracing(logr.Discard().WithSink(silent{})).WithName("x").WithValues("controller", "c", "namespace", "n", "name", "m")
	expect.Equal(t, causeOf(logr.NewContext(context.Background(), log)), (cause{"c", "n", "m"}))
	expect.Equal(t, causeOf(context.Background()), (cause{}))
}

type silent struct{}

func (silent) Init(logr.RuntimeInfo)            {}
func (silent) Enabled(int) bool                 { return false }
func (silent) Info(int, string, ...any)         {}
func (silent) Error(error, string, ...any)      {}
func (s silent) WithValues(...any) logr.LogSink { return s }
func (s silent) WithName(string) logr.LogSink   { return s }
