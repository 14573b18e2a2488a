package view

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// streams is an API server that streams what a test says, by resource; single reads find nothing.
type streams map[string]chan string

func (s streams) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Agents ask for Machines of one namespace and for marked Secrets alone: the view has no right to more, and no use for it.
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/machines") && !strings.HasSuffix(path, "/namespaces/ns/machines"),
		strings.HasSuffix(path, "/secrets") && (!strings.HasSuffix(path, "/namespaces/kube-system/secrets") || r.URL.Query().Get("labelSelector") != agent.PoolLabel):
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "true" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)
		return
	}
	_, _ = fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
	w.(http.Flusher).Flush()
	for events := s[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]; ; {
		select {
		case event := <-events:
			_, _ = fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// send sends an event about an object of some metadata.
func (s streams) send(t *testing.T, resource, kind string, metadata map[string]any) {
	t.Helper()
	s.sendObject(t, resource, kind, map[string]any{"metadata": metadata})
}

// sendObject sends an event about an object.
func (s streams) sendObject(t *testing.T, resource, kind string, object any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	must.Succeed(t, err)
	select {
	case s[resource] <- string(text):
	case <-time.After(10 * time.Second):
		t.Fatalf("nobody watches %s", resource)
	}
}

// following returns a view of such an API server that is synced.
func following(t *testing.T, machineNamespace string) (*View, streams) {
	t.Helper()
	return followed(t, machineNamespace, nil)
}

// followed is following with metrics.
func followed(t *testing.T, machineNamespace string, metrics *Metrics) (*View, streams) {
	t.Helper()
	s := streams{}
	for _, resource := range []string{"machines", "nodes", "pods", "certificatesigningrequests", "secrets"} {
		s[resource] = make(chan string)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	connection := cluster.Connection{REST: &rest.Config{Host: server.URL, QPS: -1}, HTTP: server.Client()}
	v, err := New(Options{
		Source: connection, MachineNamespace: machineNamespace, Target: connection, Clock: clock.RealClock{}, Log: logr.Discard(), Metrics: metrics,
	})
	must.Succeed(t, err)
	go func() { _ = v.Start(t.Context()) }()
	eventually(t, "synced", v.Synced)
	return v, s
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		must.False(t, time.Now().After(deadline), "not %s", what)
	}
}

// TestDeletedMachine: an agent whose Machine is deleted has lost its rights as soon as the event has come (9.4, NA-11).
func TestDeletedMachine(t *testing.T) {
	v, s := following(t, "ns")
	machine := func(name, version string) map[string]any {
		return map[string]any{"namespace": "ns", "name": name, "resourceVersion": version, "labels": map[string]string{"node": "n"}}
	}
	known := func(name string) bool {
		m, found, err := v.Machine(t.Context(), name)
		must.Succeed(t, err)
		return found && m.Node == "n"
	}
	s.send(t, "machines", "ADDED", machine("stays", "2"))
	s.send(t, "machines", "ADDED", machine("goes", "3"))
	eventually(t, "both known", func() bool { return known("stays") && known("goes") })
	s.send(t, "machines", "DELETED", machine("goes", "4"))
	eventually(t, "NA-11: forgotten", func() bool { return !known("goes") })
	expect.True(t, known("stays"), "NA-11: another Machine is forgotten, too")
}

// TestFirstLabels: without Machines the first labels of a Node count, until another Node has its name (9.4).
func TestFirstLabels(t *testing.T) {
	v, s := following(t, "")
	version := 1
	send := func(kind, uid, host, pool, secret string) {
		version++
		s.send(t, "nodes", kind, map[string]any{"name": "n", "uid": uid, "resourceVersion": fmt.Sprint(version), "labels": map[string]string{
			"kubernetes.io/hostname": host, agent.PoolLabel: pool, agent.SecretLabel: secret,
		}})
	}
	becomes := func(what string, want agent.Node) {
		t.Helper()
		var got agent.Node
		eventually(t, what, func() bool {
			got, _, _ = v.Node(t.Context(), "n")
			return got.Secret == want.Secret
		})
		expect.Equal(t, got, want, "%s", what)
	}
	send("ADDED", "1", "h", "a", "a-1")
	becomes("9.4/seen", agent.Node{UID: "1", Hostname: "h", Pool: "a", Secret: "a-1", FirstSecret: "a-1"})
	send("MODIFIED", "1", "other", "b", "b-1")
	becomes("9.4/relabelled", agent.Node{UID: "1", Hostname: "h", Pool: "a", Secret: "b-1", FirstSecret: "a-1"})
	send("MODIFIED", "2", "new", "c", "c-1")
	becomes("9.4/created anew while nobody looked", agent.Node{UID: "2", Hostname: "new", Pool: "c", Secret: "c-1", FirstSecret: "c-1"})
	send("MODIFIED", "2", "", "", "")
	becomes("9.4/without labels", agent.Node{UID: "2", Hostname: "new", Pool: "c", FirstSecret: "c-1"})
	send("MODIFIED", "4", "", "", "")
	send("MODIFIED", "4", "h", "d", "d-1")
	becomes("9.4/labels that come later", agent.Node{UID: "4", Secret: "d-1"})
	send("DELETED", "4", "h", "d", "d-1")
	eventually(t, "9.4: forgotten", func() bool { _, found, err := v.Node(t.Context(), "n"); return err == nil && !found })
	send("ADDED", "3", "h", "d", "d-1")
	becomes("9.4/created anew", agent.Node{UID: "3", Hostname: "h", Pool: "d", Secret: "d-1", FirstSecret: "d-1"})
}

// TestEveryKindIsFollowed: objects of each kind are known by events, without a read, until they are deleted or a new list does not have them.
func TestEveryKindIsFollowed(t *testing.T) {
	registry := prometheus.NewRegistry()
	v, s := followed(t, "ns", NewMetrics(registry))
	named := func(namespace, name string, labels map[string]string) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "resourceVersion": "2", "labels": labels}
	}
	objects := func(suffix string) map[string]map[string]any {
		return map[string]map[string]any{
			"machines":                   {"metadata": named("ns", "m"+suffix, nil)},
			"nodes":                      {"metadata": named("", "n"+suffix, nil)},
			"pods":                       {"metadata": named("default", "p"+suffix, nil), "spec": map[string]any{"nodeName": "n"}},
			"certificatesigningrequests": {"metadata": named("", "c"+suffix, nil), "spec": map[string]any{"username": "agent"}},
			"secrets":                    {"metadata": named("kube-system", "s"+suffix, map[string]string{agent.PoolLabel: "pool"})},
		}
	}
	known := func(suffix string) map[string]bool {
		v.mu.RLock()
		defer v.mu.RUnlock()
		_, machine := v.machines.known["m"+suffix]
		_, node := v.nodes.known["n"+suffix]
		return map[string]bool{
			"machines": machine, "nodes": node, "pods": v.pods.known[podKey{"default", "p" + suffix}] == "n",
			"certificatesigningrequests": v.requests.known["c"+suffix] == "agent", "secrets": v.configurations.known["s"+suffix].pool == "pool",
		}
	}
	all := func(suffix string, want bool) func() bool {
		return func() bool {
			for _, is := range known(suffix) {
				if is != want {
					return false
				}
			}
			return true
		}
	}
	for _, suffix := range []string{"1", "2"} {
		for resource, object := range objects(suffix) {
			s.sendObject(t, resource, "ADDED", object)
		}
		eventually(t, "NA-11: known by events", all(suffix, true))
	}
	if names, err := v.Configurations(t.Context()); err != nil || !slices.Equal(names, []string{"s1", "s2"}) {
		t.Errorf("NA-9: the configurations are %v, %v", names, err)
	}
	for resource, object := range objects("1") {
		object["metadata"].(map[string]any)["resourceVersion"] = "3"
		s.sendObject(t, resource, "DELETED", object)
	}
	eventually(t, "NA-11: deleted", all("1", false))
	expect.True(t, all("2", true)(), "NA-11: of the others there are %v", known("2"))
	s.sendObject(t, "pods", "ADDED", map[string]any{"metadata": named("default", "odd", nil), "spec": map[string]any{"nodeName": 5}})
	eventually(t, "OBS-7: counted as undecodable", func() bool {
		return samples(t, registry, "espalier_node_agent_authorizer_undecodable_objects_total")["Pod"] >= 1
	})
	got := samples(t, registry, "espalier_node_agent_authorizer_last_contact_seconds")
	expect.Equal(t, len(got), 5, "OBS-7: there is word of %d kinds, want 5: %v", len(got), got)
	for resource := range s { // The new lists, after that, have no objects.
		s.sendObject(t, resource, "ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410})
	}
	eventually(t, "NA-11: not in a new list", all("2", false))
}

// TestNamesAreShared: equal names are kept once, and a bounded number of them.
func TestNamesAreShared(t *testing.T) {
	v := &View{names: map[string]string{}}
	for i := range namesKept + 1 {
		name := fmt.Sprint("n", i)
		must.True(t, v.same(name) == name && v.same(strings.Clone(name)) == name, "%s is another name", name)
		must.True(t, len(v.names) <= namesKept, "%d names are kept, want %d at most", len(v.names), namesKept)
	}
	expect.Equal(t, len(v.names), 1, "names are kept")
	first, second := "kept", strings.Clone("kept")
	v.same(first)
	expect.Equal(t, unsafe.StringData(v.same(second)), unsafe.StringData(first), "the second copy of a name is kept")
}

// TestSelectorsMode: the configuration decides whether selectors are looked at, unless it leaves that to the API server.
func TestSelectorsMode(t *testing.T) {
	for mode, want := range map[SelectorMode]bool{SelectorsAlways: true, SelectorsNever: false} {
		got, err := (&View{mode: mode}).Selectors(t.Context())
		expect.True(t, got == want && err == nil, "NAA-6: with mode %v: got %v, %v, want %v", mode, got, err, want)
	}
}
