package garden

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/internal/webhook/referrers"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// apiServer streams the objects that there are of each resource, and then nothing.
type apiServer struct {
	objects map[string][]string
	silent  bool
}

// initial ends the objects that there are at the start of a stream.
const initial = `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.silent {
		<-r.Context().Done()
		return
	}
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[len(parts)-1]
	kind, version := map[string]string{"namespaces": "Namespace", "serviceaccounts": "ServiceAccount", "certificatesigningrequests": "CertificateSigningRequest"}[resource], "v1"
	if resource == "certificatesigningrequests" {
		version = "certificates.k8s.io/v1"
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, object := range s.objects[resource] {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
		}
		_, _ = fmt.Fprintf(w, initial+"\n", kind, version)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func watched(t *testing.T, s *apiServer) (*Watches, *graph.Graph, *prometheus.Registry, *clocktesting.FakeClock) {
	t.Helper()
	return served(t, s)
}

// served returns watches of a garden.
func served(t *testing.T, s http.Handler) (*Watches, *graph.Graph, *prometheus.Registry, *clocktesting.FakeClock) {
	t.Helper()
	return serving(t, s, &referrers.Index{})
}

// serving returns watches of a garden that feed an index, too.
func serving(t *testing.T, s http.Handler, index *referrers.Index) (*Watches, *graph.Graph, *prometheus.Registry, *clocktesting.FakeClock) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, server.Client())
	must.Succeed(t, err)
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	g := graph.New(relation.Schema)
	registry := prometheus.NewRegistry()
	state := relation.NewState(g, clock, nil)
	w := NewWatches(client, []Graph{{State: state, Table: relation.Watches}}, index, clock, NewMetrics(registry, g, prometheus.DefBuckets), logr.Discard())
	go func() { _ = w.Start(t.Context()) }()
	return w, g, registry, clock
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		must.False(t, time.Now().After(deadline), "%v", what)
	}
}

// value returns a metric of a kind.
func value(t *testing.T, registry *prometheus.Registry, name, kind string) (float64, error) {
	t.Helper()
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == "gardener_admission_controller_seed_authorizer_"+name && label.GetName() == "kind" && label.GetValue() == kind {
					return m.GetCounter().GetValue() + m.GetGauge().GetValue(), nil
				}
			}
		}
	}
	return 0, errors.New("there is no metric " + name + " of " + kind)
}

// TestUndecodable: one object that cannot be decoded keeps nobody waiting. It counts with what follows from its name, and is counted.
func TestUndecodable(t *testing.T) {
	w, g, registry, _ := watched(t, &apiServer{objects: map[string][]string{
		"shoots": {`{"metadata":{"namespace":"n","name":"bad"},"spec":{"seedName":5}}`, `{"metadata":{"namespace":"n","name":"good"},"spec":{"seedName":"a"}}`},
		"seeds":  {`{"metadata":{"name":"a"}}`},
	}})
	await(t, "the graph is not complete", w.Synced)
	secret := func(name string) graph.Vertex {
		return graph.Vertex{Kind: relation.Secret, Namespace: "n", Name: name + ".ca-cluster"}
	}
	expect.True(t, g.Check(secret("good"), relation.SeedVertex("a")).Reached, "the good one does not count")
	bad := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "bad"}
	expect.True(t, g.Check(secret("bad"), bad).Known && !g.Check(bad, relation.SeedVertex("a")).Reached,
		"of the bad one counts what follows from its name, and nothing else")
	got, err := value(t, registry, "graph_undecodable_total", "Shoot")
	expect.True(t, err == nil && got == 1, "graph_undecodable_total: got %v, %v", got, err)
	if got, err := value(t, registry, "graph_undecodable_total", "Seed"); err != nil || got != 0 {
		t.Errorf("graph_undecodable_total of Seeds: got %v, %v", got, err)
	}
}

// TestReferrers: what webhooks look up is complete when the graph is (WB-48).
func TestReferrers(t *testing.T) {
	index := &referrers.Index{}
	w, _, _, _ := serving(t, &apiServer{objects: map[string][]string{
		"shoots":         {`{"metadata":{"namespace":"n","name":"a"},"spec":{"kubernetes":{"kubeAPIServer":{"structuredAuthentication":{"configMapName":"c"}}}}}`},
		"secretbindings": {`{"metadata":{"namespace":"n","name":"b"},"secretRef":{"namespace":"n","name":"s"},"provider":{"type":"aws"}}`},
	}}, index)
	await(t, "the graph is not complete", w.Synced)
	if shoots, types := index.Shoots(relation.ConfigMap, "n", "c"), index.ProviderTypes(relation.Secret, "n", "s"); len(shoots) != 1 || len(types) != 1 {
		t.Errorf("WB-48: the index has %d Shoots and the types %v", len(shoots), types)
	}
	shoot := reflector.Kind{Set: func(runtime.Object) {}, Remove: func(_, _ string) {}, Retain: func(reflector.Names) {}}
	telling(shoot, relation.Shoot, index).Retain(reflector.NamesOf())
	telling(shoot, relation.SecretBinding, index).Remove("n", "b")
	if shoots, types := index.Shoots(relation.ConfigMap, "n", "c"), index.ProviderTypes(relation.Secret, "n", "s"); len(shoots)+len(types) > 0 {
		t.Errorf("WB-48: objects that are gone stay in the index: %d Shoots and the types %v", len(shoots), types)
	}
}

// TestContact: the silence of watches is told, and after too much of it the instance is not ready.
func TestContact(t *testing.T) {
	w, _, registry, clock := watched(t, &apiServer{})
	await(t, "the graph is not complete", w.Synced)
	if err := w.Contact(time.Nanosecond); err != nil && !strings.Contains(err.Error(), "for 0s") {
		t.Errorf("just now: %v", err)
	}
	quiet, _, _, quietClock := watched(t, &apiServer{silent: true})
	await(t, "nothing is followed", func() bool {
		quietClock.Step(time.Microsecond)
		return quiet.each[len(quiet.each)-1].Silence() > 0
	})
	quietClock.Step(11 * time.Minute)
	err := quiet.Contact(10 * time.Minute)
	expect.True(t, err != nil && strings.Contains(err.Error(), "Namespace for 11m0s") && strings.Contains(err.Error(), "Shoot for 11m0s"),
		"after eleven minutes: %v", err)
	expect.Succeed(t, quiet.Contact(0), "0 means never")
	clock.Step(90 * time.Second)
	got, err := value(t, registry, "graph_last_contact_seconds", "Shoot")
	expect.True(t, err == nil && got >= 90 && got <= 91, "graph_last_contact_seconds: got %v, %v", got, err)
	expect.Succeed(t, w.Contact(10*time.Minute), "after a minute and a half")
}
