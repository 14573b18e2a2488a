package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/agent"
	"github.com/espalier-project/espalier/internal/ratelimit"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// apiServer answers single reads from texts by path, and counts them; lists and watches are not answered, so that nothing is known
// but what is read.
type apiServer struct {
	mu    sync.Mutex
	texts map[string]string
	reads map[string]int
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[r.URL.Path]++
	w.Header().Set("Content-Type", "application/json")
	text, found := s.texts[r.URL.Path]
	switch {
	case text == "error":
		w.WriteHeader(http.StatusInternalServerError)
	case !found && strings.HasPrefix(r.URL.Path, "/apis/gone"):
		w.WriteHeader(http.StatusNotFound)
	case !found:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)
	default:
		_, _ = io.WriteString(w, text)
	}
}

func newView(t *testing.T, texts map[string]string) (*View, *apiServer) {
	t.Helper()
	s := &apiServer{texts: texts, reads: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	connection := cluster.Connection{REST: &rest.Config{Host: server.URL, QPS: 0.01, Burst: 1}, HTTP: server.Client()}
	v, err := New(Options{Source: connection, MachineNamespace: "ns", Target: connection, Selectors: SelectorsAuto, Clock: clock.RealClock{}, Log: logr.Discard()})
	must.Succeed(t, err)
	return v, s
}

// TestUnseen is the live re-read before a denial: stale caches must not deny what has come (12, NA-11).
func TestUnseen(t *testing.T) {
	v, server := newView(t, map[string]string{
		"/apis/machine.sapcloud.io/v1alpha1/namespaces/ns/machines/m": `{"metadata":{"name":"m","labels":{"node":"n"}},"spec":{"nodeTemplate":{"metadata":{"labels":{"worker.gardener.cloud/gardener-node-agent-secret-name":"osc"}}}}}`,
		"/api/v1/nodes/n":                                           `{"metadata":{"name":"n","labels":{"kubernetes.io/hostname":"h"}}}`,
		"/api/v1/namespaces/default/pods/p":                         `{"metadata":{"name":"p"},"spec":{"nodeName":"n"}}`,
		"/apis/certificates.k8s.io/v1/certificatesigningrequests/c": `{"metadata":{"name":"c"},"spec":{"username":"u"}}`,
		"/api/v1/namespaces/kube-system/secrets/osc":                `{"metadata":{"name":"osc"},"data":{"osc.yaml":"eyJzcGVjIjp7ImZpbGVzIjpbeyJjb250ZW50Ijp7InNlY3JldFJlZiI6eyJuYW1lIjoieCJ9fX1dfX0="}}`,
		"/api/v1/namespaces/kube-system/secrets/bad":                `{"metadata":{"name":"bad"},"data":{"osc.yaml":"Ww=="}}`,
		"/api/v1/nodes/broken":                                      "error",
	})
	ctx := context.Background()
	m, found, err := v.Machine(ctx, "m")
	expect.True(t, err == nil && found && m.Node == "n" && m.Secret == "osc", "Machine: got %v, %v, %v", m, found, err)
	if n, found, err := v.Node(ctx, "n"); err != nil || !found || n != (agent.Node{}) {
		t.Errorf("T3-7: Node, without its labels: got %v, %v, %v", n, found, err)
	}
	if node, found, err := v.NodeOfPod(ctx, "default", "p"); err != nil || !found || node != "n" {
		t.Errorf("Pod: got %v, %v, %v", node, found, err)
	}
	if user, found, err := v.UserOfCertificateRequest(ctx, "c"); err != nil || !found || user != "u" {
		t.Errorf("CSR: got %v, %v, %v", user, found, err)
	}
	if references, found, err := v.References(ctx, "osc"); err != nil || !found || len(references) != 1 || references[0].Secret != "x" {
		t.Errorf("Secret: got %v, %v, %v", references, found, err)
	}
	if _, _, err := v.References(ctx, "bad"); err == nil || strings.Contains(err.Error(), "[") {
		t.Errorf("an undecodable Secret: got %v", err)
	}
	if _, found, err := v.Node(ctx, "gone"); err != nil || found {
		t.Errorf("no Node: got %v, %v", found, err)
	}
	if _, _, err := v.Node(ctx, "broken"); err == nil {
		t.Error("a Node that cannot be read is taken for none")
	}
	// Known objects are not read again, but for those that were not complete.
	v.mu.Lock()
	v.nodes.set("known", agent.Node{})
	v.pods.set(podKey{"default", "p"}, "")
	v.mu.Unlock()
	if _, found, err := v.Node(ctx, "known"); err != nil || !found || server.reads["/api/v1/nodes/known"] != 0 {
		t.Errorf("a known Node: got %v, %v, read %d times", found, err, server.reads["/api/v1/nodes/known"])
	}
	node, _, err := v.NodeOfPod(ctx, "default", "p")
	expect.True(t, err == nil && node == "n", "a Pod that was not bound: got %v, %v", node, err)
	if looked, err := v.Selectors(ctx); err != nil || !looked {
		t.Errorf("NAA-5: while it cannot be found out, selectors are looked at: got %v, %v", looked, err)
	}
}

// TestBursts: an agent that asks for a burst of what no watch has brought gets an answer to each question: node agents may send 50 requests a
// second and 100 at once, and the view's own client two reads (T3-1).
func TestBursts(t *testing.T) {
	v, server := newView(t, map[string]string{
		"/api/v1/namespaces/default/pods/p": `{"metadata":{"name":"p"},"spec":{"nodeName":"n"}}`,
	})
	const burst = 300
	var asking sync.WaitGroup
	for i := range burst {
		asking.Go(func() {
			_, found, err := v.NodeOfPod(ratelimit.WithClient(t.Context(), "joining"), "default", fmt.Sprint("gone-", i))
			expect.True(t, err == nil && !found, "T3-1: a Pod that is gone: got %v, %v", found, err)
		})
	}
	node, found, err := v.NodeOfPod(ratelimit.WithClient(t.Context(), "other"), "default", "p")
	expect.True(t, err == nil && found && node == "n", "T3-1: another agent's Pod: got %v, %v, %v", node, found, err)
	asking.Wait()
	expect.Equal(t, len(server.reads), burst+1, "objects were read")
}

// TestPoolOf: a Secret that no watch has brought yet is one if it has the label.
func TestPoolOf(t *testing.T) {
	v, _ := newView(t, map[string]string{
		"/api/v1/namespaces/kube-system/secrets/new":   `{"metadata":{"name":"new","labels":{"worker.gardener.cloud/pool":"p"}}}`,
		"/api/v1/namespaces/kube-system/secrets/other": `{"metadata":{"name":"other"}}`,
		"/api/v1/namespaces/kube-system/secrets/away":  "error",
	})
	for secret, want := range map[string]bool{"new": true, "other": false, "gone": false} {
		if pool, got, err := v.PoolOf(t.Context(), secret); err != nil || got != want || got && pool != "p" {
			t.Errorf("9.4: %s: got %q, %v, %v", secret, pool, got, err)
		}
	}
	_, _, err := v.PoolOf(t.Context(), "away")
	expect.Error(t, err, "9.4: a Secret that cannot be read is taken for none")
}

// samples returns the values of a metric by its labels, joined.
func samples(t *testing.T, registry *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			values[strings.Join(labels, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}

// TestAway: while the API server answers nothing, what is known is answered at once, and few reads are under way.
func TestAway(t *testing.T) {
	var hanging atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hanging.Add(1)
		defer hanging.Add(-1)
		<-r.Context().Done()
	}))
	defer server.CloseClientConnections()
	connection := cluster.Connection{REST: &rest.Config{Host: server.URL, QPS: -1}, HTTP: server.Client()}
	registry := prometheus.NewRegistry()
	v, err := New(Options{Target: connection, Clock: clock.RealClock{}, Metrics: NewMetrics(registry), Log: logr.Discard()})
	must.Succeed(t, err)
	v.nodes.set("known", agent.Node{Hostname: "h"})
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	for i := range 2 * cluster.Streams {
		asking.Go(func() { _, _, _ = v.Node(ratelimit.WithClient(ctx, fmt.Sprint(i)), "gone") })
	}
	for until := time.Now().Add(10 * time.Second); hanging.Load() < cluster.Streams; {
		must.False(t, time.Now().After(until), "%d reads are under way", hanging.Load())
		time.Sleep(time.Millisecond)
	}
	impatient, end := context.WithTimeout(ratelimit.WithClient(ctx, "one more"), 10*time.Millisecond)
	defer end()
	if _, _, err := v.Node(impatient, "gone"); !errors.Is(err, ratelimit.ErrRefused) {
		t.Errorf("one more, until its deadline: got %v", err)
	}
	n, found, err := v.Node(ctx, "known")
	expect.True(t, err == nil && found && n.Hostname == "h", "a known Node: got %v, %v, %v", n, found, err)
	expect.Equal(t, samples(t, registry, "espalier_node_agent_authorizer_live_reads_total")["limited"], 1, "reads are counted as limited")
}

// TestContactMetric: silence is told for each kind while a shoot is followed.
func TestContactMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	v, _ := newView(t, nil)
	v.metrics, v.shoot = NewMetrics(registry), "one"
	count := func() int {
		return len(samples(t, registry, "espalier_node_agent_authorizer_last_contact_seconds"))
	}
	end := v.metrics.begin(v)
	expect.Equal(t, count(), 5, "section 3: kinds are told of")
	end()
	expect.Equal(t, count(), 0, "section 3: kinds of a shoot that is not followed any more")
}

// TestFollows is NAA-7 in small: what is followed is known, and forgotten when it goes.
func TestFollows(t *testing.T) {
	events := `{"type":"ADDED","object":{"metadata":{"name":"n","labels":{"kubernetes.io/hostname":"h"}}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}
`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1/nodes" && r.URL.Query().Get("watch") == "true" {
			_, _ = io.WriteString(w, events)
		} else if r.URL.Query().Get("watch") == "true" {
			_, _ = io.WriteString(w, events[strings.Index(events, "\n")+1:])
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.CloseClientConnections()
	connection := cluster.Connection{REST: &rest.Config{Host: server.URL, QPS: -1}, HTTP: server.Client()}
	v, err := New(Options{Target: connection, Clock: clock.RealClock{}, Log: logr.Discard()})
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = v.Start(ctx) }()
	deadline := time.Now().Add(10 * time.Second)
	for !v.Synced() {
		must.False(t, time.Now().After(deadline), "AE-26, NAA-7: not synced")
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	silences := v.Silences()
	expect.True(t, len(silences) == 4 && silences["Node"] <= time.Minute, "section 3: got the silences %v", silences)
	v.mu.RLock()
	defer v.mu.RUnlock()
	expect.True(t, v.nodes.known["n"].Hostname == "h" && len(v.nodes.known) == 1 && !v.ByMachine(), "got %v", v.nodes.known)
}

// TestUnseenNode: labels of a Node that no watch has brought name no host: its agent may have patched it (9.4).
func TestUnseenNode(t *testing.T) {
	server := httptest.NewServer(&apiServer{reads: map[string]int{}, texts: map[string]string{
		"/api/v1/nodes/n": `{"metadata":{"name":"n","uid":"1","labels":{"kubernetes.io/hostname":"h","worker.gardener.cloud/pool":"p","worker.gardener.cloud/gardener-node-agent-secret-name":"s"}}}`,
	}})
	defer server.Close()
	v, err := New(Options{Target: cluster.Connection{REST: &rest.Config{Host: server.URL}, HTTP: server.Client()}, Clock: clock.RealClock{}, Log: logr.Discard()})
	must.Succeed(t, err)
	if n, found, err := v.Node(t.Context(), "n"); err != nil || !found || n != (agent.Node{UID: "1", Pool: "p", Secret: "s", FirstSecret: "s"}) {
		t.Errorf("9.4: got %+v, %v, %v", n, found, err)
	}
}

// TestReadsAreCounted: each read of what no watch has brought is counted by its outcome, and all outcomes are there from the start.
func TestReadsAreCounted(t *testing.T) {
	v, _ := newView(t, map[string]string{"/api/v1/nodes/n": `{"metadata":{"name":"n"}}`, "/api/v1/nodes/broken": "error"})
	registry := prometheus.NewRegistry()
	v.metrics = NewMetrics(registry)
	const name = "espalier_node_agent_authorizer_live_reads_total"
	want := map[string]float64{outcomeFound: 0, outcomeAbsent: 0, outcomeLimited: 0, outcomeError: 0}
	expect.DeepEqual(t, samples(t, registry, name), want, "OBS-7: at the start")
	for _, node := range []string{"n", "gone", "gone", "broken", "broken", "broken"} {
		_, _, _ = v.Node(t.Context(), node)
	}
	want = map[string]float64{outcomeFound: 1, outcomeAbsent: 2, outcomeLimited: 0, outcomeError: 3}
	expect.DeepEqual(t, samples(t, registry, name), want, "OBS-7")
}
