// Package fidelity asks the simulated API server and a real one the same, and compares what matters of the answers.
package fidelity

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/fake"
	"github.com/espalier-project/espalier/test/must"
)

const gadgetCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.things.example.org"},"spec":{
	"group":"things.example.org","scope":"Namespaced","names":{"kind":"Gadget","plural":"gadgets"},"versions":[{"name":"v1","served":true,"storage":true,
	"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// server is one of the two.
type server struct {
	http  *http.Client
	base  string
	vars  map[string]string
	known map[string]string // resource versions by path
}

// request is sent to both. Bodies may have {uid of NAME} and {version of NAME}.
type request struct {
	method, path, body, accept string
	// agent is the client's User-Agent, "asker/1" if it is empty.
	agent string
}

const (
	configMaps  = "/api/v1/namespaces/default/configmaps"
	gadgets     = "/apis/things.example.org/v1/namespaces/default/gadgets"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
	policies    = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
)

var requests = []request{
	{method: "GET", path: configMaps + "/a"},
	{method: "POST", path: configMaps, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"in":"yes"}},"data":{"k":"1"}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"a"}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"Wrong_Name"}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"b","namespace":"other"}}`},
	{method: "POST", path: "/api/v1/namespaces/missing/configmaps", body: `{"metadata":{"name":"b"}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"b","resourceVersion":"5"}}`},
	{method: "GET", path: configMaps + "/a", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
	{method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"a","labels":{"in":"yes"}},"data":{"k":"2"}}`},
	{method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"a","labels":{"in":"yes"}},"data":{"k":"2"}}`},
	{method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"3"}}`},
	{method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"a","uid":"other"},"data":{"k":"3"}}`},
	{method: "PUT", path: configMaps + "/a", body: `{"metadata":{"name":"c"},"data":{"k":"3"}}`},
	{method: "PUT", path: configMaps + "/gone", body: `{"metadata":{"name":"gone"},"data":{"k":"3"}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"data":{"k":null,"l":"1"}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"resourceVersion":"1"},"data":{"l":"2"}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"uid":"other"},"data":{"l":"2"}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"uid":"{uid of a}","resourceVersion":"{version of a}"},"data":{"l":"2"}}`},
	{method: "PATCH", path: configMaps + "/gone", body: `{"data":{"l":"2"}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"labels":{"in":"no"}}}`},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"labels":{"in":"yes"},"finalizers":["example.org/hold"]}}`},
	{method: "DELETE", path: configMaps + "/a", body: `{"preconditions":{"uid":"other"}}`},
	{method: "DELETE", path: configMaps + "/a", body: `{"preconditions":{"resourceVersion":"1"}}`},
	{method: "DELETE", path: configMaps + "/a", body: `{"preconditions":{"uid":"{uid of a}","resourceVersion":"{version of a}"}}`},
	{method: "DELETE", path: configMaps + "/a"},
	{method: "PATCH", path: configMaps + "/a", body: `{"metadata":{"finalizers":null}}`},
	{method: "GET", path: configMaps + "/a"},
	{method: "DELETE", path: configMaps + "/a"},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"fixed","labels":{"in":"yes"}},"data":{"k":"1"},"immutable":true}`},
	{method: "PUT", path: configMaps + "/fixed", body: `{"metadata":{"name":"fixed"},"data":{"k":"2"},"immutable":true}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"l1","labels":{"in":"yes"}}}`},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"l2","labels":{"in":"yes"}}}`},
	{method: "GET", path: configMaps + "?labelSelector=in%3Dyes"},
	{method: "GET", path: configMaps + "?labelSelector=in%3Dyes&limit=2"},
	{method: "GET", path: configMaps + "?fieldSelector=metadata.name%3Dl2"},
	{method: "GET", path: configMaps + "?labelSelector=in%3Dyes", accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"},
	{method: "GET", path: configMaps + "?resourceVersion=99999999&resourceVersionMatch=NotOlderThan"},
	{method: "GET", path: "/apis/things.example.org/v1/nothings"},
	{method: "GET", path: "/apis/nothing.example.org/v1"},
	{method: "POST", path: gadgets, body: `{"apiVersion":"things.example.org/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"v":1},"status":{"s":1}}`},
	{method: "PATCH", path: gadgets + "/g", body: `{"metadata":{"labels":{"x":"y"}}}`},
	{method: "PATCH", path: gadgets + "/g", body: `{"spec":{"v":2},"status":{"s":2}}`},
	{method: "PATCH", path: gadgets + "/g/status", body: `{"spec":{"v":3},"status":{"s":3}}`},
	{method: "PATCH", path: gadgets + "/g/status", body: `{"metadata":{"resourceVersion":"1"},"status":{"s":4}}`},
	{method: "PUT", path: gadgets + "/g", body: `{"apiVersion":"things.example.org/v1","kind":"Gadget","metadata":{"name":"g"},"spec":{"v":4}}`},
	{method: "PATCH", path: gadgets + "/g", body: `{"metadata":{"finalizers":["example.org/hold"]}}`},
	{method: "DELETE", path: gadgets + "/g"},
	{method: "PATCH", path: gadgets + "/g", body: `{"metadata":{"finalizers":["example.org/hold","example.org/other"]}}`},
	{method: "PATCH", path: gadgets + "/g", body: `{"metadata":{"finalizers":[]}}`},
	{method: "GET", path: gadgets + "/g"},
	{method: "POST", path: policies, body: `{"metadata":{"name":"p"},"spec":{"podSelector":{}}}`},
	{method: "PATCH", path: policies + "/p", body: `{"spec":{"ingress":[{}]}}`},
	{method: "PATCH", path: policies + "/p", body: `{"spec":{"ingress":[{}]}}`},
	{method: "PATCH", path: policies + "/p", body: `{"metadata":{"annotations":{"x":"y"}}}`},
	{method: "POST", path: deployments, body: `{"metadata":{"name":"d"},"spec":{"replicas":0,"selector":{"matchLabels":{"app":"d"}},"template":{"metadata":{"labels":{"app":"d"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`},
	{method: "PATCH", path: deployments + "/d/status", body: `{"status":{"observedGeneration":1}}`},
	{method: "PATCH", path: deployments + "/d", body: `{"spec":{"template":{"metadata":{"annotations":{"x":"y"}}}}}`},
	{method: "DELETE", path: deployments + "/d", body: `{"propagationPolicy":"Foreground"}`},
	{method: "GET", path: deployments + "/d"},
	{method: "POST", path: configMaps, body: `{"metadata":{"name":"m","annotations":{"x":"1","y":"1"},"labels":{"l":"1"}},"data":{"k":"1"}}`, agent: "one/1"},
	{method: "PUT", path: configMaps + "/m", body: `{"metadata":{"name":"m","annotations":{"x":"1","y":"2"},"labels":{"l":"1"}},"data":{"k":"1"}}`, agent: "two/1"},
	{method: "PATCH", path: configMaps + "/m", body: `{"metadata":{"annotations":{"x":"1","z":"1"}}}`, agent: "three/1"},
	{method: "PATCH", path: configMaps + "/m", body: `{"metadata":{"annotations":{"y":null}}}`, agent: "three/1"},
	{method: "PATCH", path: configMaps + "/m", body: `{"metadata":{"annotations":{"y":"2"}}}`, agent: "one/2"},
	{method: "PUT", path: configMaps + "/m", body: `{"metadata":{"name":"m","annotations":{"x":"1","y":"2","z":"2"}},"data":{"k":"2"}}`, agent: "one"},
	{method: "PATCH", path: gadgets + "/g", body: `{"metadata":{"annotations":{"y":"2"}}}`, agent: "one/1"},
	{method: "POST", path: gadgets, body: `{"apiVersion":"things.example.org/v1","kind":"Gadget","metadata":{"name":"h","annotations":{"x":"1"}},"spec":{"v":1}}`, agent: "one/1"},
	{method: "PATCH", path: gadgets + "/h/status", body: `{"metadata":{"annotations":{"x":"2"}},"status":{"s":3}}`, agent: "two/1"},
	{method: "PATCH", path: gadgets + "/h", body: `{"metadata":{"annotations":{"x":"2"}}}`, agent: "two/1"},
}

var reference = regexp.MustCompile(`\{(uid|version) of ([a-z0-9]+)\}`)

func (s *server) do(r request) (int, map[string]any, error) {
	body := reference.ReplaceAllStringFunc(r.body, func(m string) string { return s.vars[m] })
	from, err := http.NewRequest(r.method, s.base+r.path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	from.Header.Set("Content-Type", "application/json")
	if r.method == http.MethodPatch {
		from.Header.Set("Content-Type", "application/merge-patch+json")
	}
	from.Header.Set("Accept", "application/json")
	from.Header.Set("User-Agent", cmp.Or(r.agent, "asker/1"))
	if r.accept != "" {
		from.Header.Set("Accept", r.accept)
	}
	response, err := s.http.Do(from)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is written
	var answer map[string]any
	if !strings.Contains(response.Header.Get("Content-Type"), "json") {
		return response.StatusCode, map[string]any{"kind": response.Header.Get("Content-Type")}, nil
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return response.StatusCode, nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return response.StatusCode, answer, nil
}

// ask returns what matters of an answer.
func (s *server) ask(r request) (map[string]any, error) {
	code, answer, err := s.do(r)
	if err != nil {
		return nil, err
	}
	summary := map[string]any{"code": code, "kind": answer["kind"]}
	metadata, _ := answer["metadata"].(map[string]any)
	details, _ := answer["details"].(map[string]any)
	switch {
	case answer["kind"] == "Status" && answer["status"] == "Success":
	case answer["kind"] == "Status":
		summary["reason"] = answer["reason"]
		for _, name := range []string{"name", "group", "kind"} {
			summary["details."+name] = details[name]
		}
		causes, _ := details["causes"].([]any)
		for _, cause := range causes {
			summary["cause "+fmt.Sprint(cause.(map[string]any)["field"])] = cause.(map[string]any)["reason"]
		}
	case answer["items"] != nil:
		var names []string
		for _, item := range answer["items"].([]any) {
			names = append(names, item.(map[string]any)["metadata"].(map[string]any)["name"].(string))
		}
		summary["names"], summary["continued"] = names, metadata["continue"] != nil && metadata["continue"] != ""
	case metadata == nil:
	default:
		name, _ := metadata["name"].(string)
		s.vars["{uid of "+name+"}"], _ = metadata["uid"].(string)
		version, _ := metadata["resourceVersion"].(string)
		path := strings.TrimSuffix(strings.Split(r.path, "?")[0], "/status")
		if r.method == http.MethodPost {
			path += "/" + name
		}
		summary["version"] = "new"
		if s.known[path] == version {
			summary["version"] = "same"
		}
		s.vars["{version of "+name+"}"], s.known[path] = version, version
		for _, field := range []string{"generation", "finalizers", "labels"} {
			summary[field] = metadata[field]
		}
		summary["managers"] = managersOf(metadata)
		summary["deleting"] = metadata["deletionTimestamp"] != nil
		summary["data"] = answer["data"]
		if answer["kind"] == "Gadget" {
			summary["spec"], summary["status"] = answer["spec"], answer["status"]
		}
	}
	return summary, nil
}

// managersOf returns who wrote each annotation, by its name.
func managersOf(metadata map[string]any) map[string]string {
	managers := map[string]string{}
	entries, _ := metadata["managedFields"].([]any)
	for _, entry := range entries {
		e := entry.(map[string]any)
		annotations, _, _ := unstructured.NestedMap(e, "fieldsV1", "f:metadata", "f:annotations")
		for name := range annotations {
			if name != "." {
				managers[name] += fmt.Sprint(e["manager"], " ", e["operation"], " ", e["apiVersion"])
			}
		}
	}
	return managers
}

// watch returns the first events of a watch, as text.
func (s *server) watch(ctx context.Context, path string, events int) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	from, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.http.Do(from)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // nothing is written
	var told []string
	for lines := bufio.NewScanner(response.Body); len(told) < events && lines.Scan(); {
		var event struct {
			Type   string
			Object struct {
				Kind     string
				Reason   string
				Metadata struct {
					Name        string
					Annotations map[string]string
				}
			}
		}
		if err := json.NewDecoder(bytes.NewReader(lines.Bytes())).Decode(&event); err != nil {
			return told, err
		}
		told = append(told, strings.TrimSpace(fmt.Sprint(event.Type, " ", event.Object.Kind, " ", event.Object.Metadata.Name, event.Object.Reason, event.Object.Metadata.Annotations["k8s.io/initial-events-end"])))
	}
	return told, nil
}

func newServers(t *testing.T) map[string]*server {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Name: "fidelity", Dir: filepath.Join(t.TempDir(), "cluster")})
	must.Succeed(t, err)
	t.Cleanup(c.Stop)
	admin, err := c.Admin()
	must.Succeed(t, err)
	client, err := rest.HTTPClientFor(admin)
	must.Succeed(t, err)
	simulated := fake.New(&sync.Mutex{}, append(fake.BuiltIn(), fake.CustomKind("things.example.org", "v1", "Gadget", "gadgets", true)), nil, "default")
	servers := map[string]*server{
		"real":      {http: client, base: c.URL()},
		"simulated": {http: &http.Client{Transport: &fake.Transport{Server: simulated}}, base: "http://simulated"},
	}
	for name, s := range servers {
		s.vars, s.known = map[string]string{}, map[string]string{}
		if _, _, err := s.do(request{method: "POST", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: gadgetCRD}); err != nil {
			t.Fatal(name, err)
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if code, _, err := s.do(request{method: "GET", path: gadgets}); err == nil && code == http.StatusOK {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(name, "does not serve Gadgets")
			}
		}
	}
	return servers
}

// TestFidelity sends the same requests to both servers.
func TestFidelity(t *testing.T) {
	servers := newServers(t)
	genuine, simulated := servers["real"], servers["simulated"]
	starts := map[string]string{}
	for name, s := range servers {
		_, answer, err := s.do(request{method: "GET", path: configMaps})
		must.Succeed(t, err)
		starts[name] = answer["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	for _, r := range requests {
		want, err := genuine.ask(r)
		must.Succeed(t, err)
		got, err := simulated.ask(r)
		must.Succeed(t, err)
		expect.Equal(t, gocmp.Diff(want, got), "", "%s %s %s (-real +simulated)", r.method, r.path, r.body)
	}
	for name, w := range map[string]struct {
		query  string
		events int
	}{
		"from a version, with a selector":       {"labelSelector=in%3Dyes&resourceVersion=START", 12},
		"metadata of everything from the start": {"fieldSelector=metadata.name%3Dfixed", 1},
		"a version that is still to come":       {"resourceVersion=99999999&allowWatchBookmarks=true", 1},
		"initial events":                        {"labelSelector=in%3Dyes&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 4},
	} {
		told := map[string][]string{}
		for which, s := range servers {
			var err error
			if told[which], err = s.watch(t.Context(), configMaps+"?watch=true&timeoutSeconds=3&"+strings.ReplaceAll(w.query, "START", starts[which]), w.events); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(told["real"], told["simulated"]) {
			t.Errorf("watch %s: %s", name, gocmp.Diff(told["real"], told["simulated"]))
		}
	}
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }
