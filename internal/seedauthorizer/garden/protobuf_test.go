package garden

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-project/espalier/internal/externalapi/protodecode"
	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/gardengen"
	"github.com/espalier-project/espalier/test/gen/gardenproto"
	"github.com/espalier-project/espalier/test/must"
)

// gardens are the kinds of Gardener in both tables.
func gardens() []*relation.Watch {
	var all []*relation.Watch
	for _, table := range []relation.Table{relation.Watches, relation.SelfHosted} {
		for _, w := range table {
			if !isWhole(w.Resource.GroupVersion()) {
				all = append(all, w)
			}
		}
	}
	return all
}

// TestMessages: each field that is read from JSON has a number.
func TestMessages(t *testing.T) {
	for _, w := range gardens() {
		expect.True(t, w.Message != nil, "%s has no message", w.Resource.Resource)
		expect.Empty(t, protodecode.Missing(reflect.TypeOf(w.New()).Elem(), w.Message),
			"%s", w.Resource.Resource)
	}
}

func kindName(w *relation.Watch) string { return relation.Schema.Names[w.Kind] }

// content is an object in the form of its JSON, with more that a real one has.
func content(t must.TB, w *relation.Watch, object runtime.Object) map[string]any {
	raw, err := json.Marshal(object)
	must.Succeed(t, err)
	var c map[string]any
	must.Succeed(t, json.Unmarshal(raw, &c))
	c["apiVersion"], c["kind"] = w.Resource.GroupVersion().String(), kindName(w)
	metadata := c["metadata"].(map[string]any)
	metadata["generation"], metadata["creationTimestamp"] = 5, "2026-01-01T00:00:00Z"
	metadata["managedFields"] = []any{map[string]any{"manager": "m", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}
	withoutForeign(c)
	if w.Kind == relation.Shoot {
		c["spec"].(map[string]any)["networking"] = map[string]any{"type": "calico", "ipFamilies": []any{"IPv4", "IPv6"}, "providerConfig": map[string]any{"a": 1}}
	}
	return c
}

// withoutForeign removes what the slices alone have: namespaces of references to what is in the same namespace, and the older references of domains
// that are younger than them.
func withoutForeign(value any) {
	switch typed := value.(type) {
	case []any:
		for _, element := range typed {
			withoutForeign(element)
		}
	case map[string]any:
		if reference, is := typed["resourceRef"].(map[string]any); is {
			delete(reference, "namespace")
		}
		if providers, is := typed["providers"].([]any); is {
			for _, provider := range providers {
				if reference, is := provider.(map[string]any)["credentialsRef"].(map[string]any); is {
					delete(reference, "namespace")
				}
			}
		}
		if domain, is := typed["internal"].(map[string]any); is {
			delete(domain, "secretRef")
		}
		domains, _ := typed["defaults"].([]any)
		for _, domain := range domains {
			delete(domain.(map[string]any), "secretRef")
		}
		for _, element := range typed {
			withoutForeign(element)
		}
	}
}

// TestProtobufProperty: an object contributes the same edges whether it came as JSON or as Protocol Buffers, and all that is read of it is the same.
func TestProtobufProperty(t *testing.T) {
	encoder, err := gardenproto.New()
	must.Succeed(t, err)
	state := relation.NewState(graph.New(relation.Schema), clocktesting.NewFakePassiveClock(gardengen.Now), nil)
	rapid.Check(t, func(t *rapid.T) {
		w := gardens()[rapid.IntRange(0, len(gardens())-1).Draw(t, "watch")]
		c := content(t, w, gardengen.New(rapid.Uint64().Draw(t, "seed")).Object(w.Kind))
		raw, err := json.Marshal(c)
		must.Succeed(t, err)
		fromJSON, fromProtobuf := w.New(), w.New()
		must.Succeed(t, kjson.UnmarshalCaseSensitivePreserveInts(raw, fromJSON))
		message, err := encoder.Message(c)
		must.Succeed(t, err)
		must.Succeed(t, protodecode.ShapeOf(reflect.TypeOf(fromProtobuf).Elem(), w.Message).Decode(message, fromProtobuf))
		reflect.ValueOf(fromJSON).Elem().FieldByName("TypeMeta").SetZero() // A list of JSON has none either.
		expect.DeepEqual(t, fromProtobuf, fromJSON, "GR-8: %s (-JSON +Protocol Buffers)", raw)
		owner, edges, keep := w.Contribute(fromJSON, state.Facts())
		owner2, edges2, keep2 := w.Contribute(fromProtobuf, state.Facts())
		expect.True(t, owner == owner2 && keep == keep2 && slices.Equal(edges, edges2),
			"GR-8: JSON contributes %v, Protocol Buffers %v", edges, edges2)
	})
}

// protobufServer streams like apiServer, in Protocol Buffers.
type protobufServer struct {
	t       *testing.T
	encoder *gardenproto.Encoder
	objects map[string][]map[string]any
	// broken are messages of Shoots.
	broken [][]byte
}

func (s *protobufServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	expect.True(s.t, strings.HasPrefix(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf"),
		"%s is asked for as %q", resource, r.Header.Get("Accept"))
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
	send := func(event, apiVersion, kind string, message []byte) {
		object, err := gardenproto.Object(apiVersion, kind, message)
		expect.Succeed(s.t, err)
		frame, err := gardenproto.Event(event, object)
		expect.Succeed(s.t, err)
		_, _ = w.Write(frame)
	}
	message := func(c map[string]any) []byte {
		m, err := s.encoder.Message(c)
		expect.Succeed(s.t, err)
		return m
	}
	for _, c := range s.objects[resource] {
		send("ADDED", c["apiVersion"].(string), c["kind"].(string), message(c))
	}
	if resource == "shoots" {
		for _, broken := range s.broken {
			send("ADDED", "core.gardener.cloud/v1beta1", "Shoot", broken)
		}
	}
	end := map[string]any{"kind": "ServiceAccount", "metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]any{"k8s.io/initial-events-end": "true"}}}
	kind, version := map[string]string{"namespaces": "Namespace", "serviceaccounts": "ServiceAccount", "certificatesigningrequests": "CertificateSigningRequest"}[resource], "v1"
	if resource == "certificatesigningrequests" {
		version = "certificates.k8s.io/v1"
	}
	send("BOOKMARK", version, kind, message(end)) // Metadata is the first field of all kinds.
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// TestForms: a garden that comes as JSON and the same garden as Protocol Buffers make the same graph.
func TestForms(t *testing.T) {
	encoder, err := gardenproto.New()
	must.Succeed(t, err)
	plain, framed := &apiServer{objects: map[string][]string{}}, &protobufServer{t: t, encoder: encoder, objects: map[string][]map[string]any{}}
	g := gardengen.New(1)
	for range 30 {
		for _, w := range gardens()[:len(relation.Watches)-2] {
			c := content(t, w, g.Object(w.Kind))
			raw, err := json.Marshal(c)
			must.Succeed(t, err)
			resource := w.Resource.Resource
			plain.objects[resource], framed.objects[resource] = append(plain.objects[resource], string(raw)), append(framed.objects[resource], c)
		}
	}
	fromJSON, one, _, _ := watched(t, plain)
	fromProtobuf, other, _, _ := served(t, framed)
	await(t, "the graph of JSON is not complete", fromJSON.Synced)
	await(t, "the graph of Protocol Buffers is not complete", fromProtobuf.Synced)
	vertices, edges := one.Size()
	expect.True(t, vertices >= 100 && edges >= 200, "the graph has %d vertices and %d edges only", vertices, edges)
	expect.DeepEqual(t, lines(other), lines(one), "GR-8: (-JSON +Protocol Buffers)")
}

// lines are all edges of a graph.
func lines(g *graph.Graph) []string {
	all := map[string]bool{}
	for _, v := range g.Find(func(graph.Vertex) bool { return true }, 1<<20) {
		all[g.String(v)] = true
		for _, e := range g.EdgesFrom(v) {
			all[fmt.Sprintf("%s -> %s %d", g.String(e.From), g.String(e.To), e.Class)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// TestUndecodableFrames: an object of which a field is broken counts with what follows from its name, is counted, and keeps nobody waiting.
func TestUndecodableFrames(t *testing.T) {
	encoder, err := gardenproto.New()
	must.Succeed(t, err)
	good := map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": map[string]any{"namespace": "n", "name": "good"}, "spec": map[string]any{"seedName": "a"}}
	message, err := encoder.Message(map[string]any{"kind": "Shoot", "metadata": map[string]any{"namespace": "n", "name": "bad", "resourceVersion": "5"}})
	must.Succeed(t, err)
	w, g, registry, _ := served(t, &protobufServer{
		t: t, encoder: encoder, objects: map[string][]map[string]any{"shoots": {good}}, broken: [][]byte{append(message, 2<<3|2, 2, 14<<3, 1)}, // seedName is a number.
	})
	await(t, "the graph is not complete", w.Synced)
	bad := graph.Vertex{Kind: relation.Shoot, Namespace: "n", Name: "bad"}
	if !g.Check(graph.Vertex{Kind: relation.Secret, Namespace: "n", Name: "bad.ca-cluster"}, bad).Known || g.Check(bad, relation.SeedVertex("a")).Reached {
		t.Error("B-8: of the bad one counts what follows from its name, and nothing else")
	}
	expect.True(t, g.Check(graph.Vertex{Kind: relation.Secret, Namespace: "n", Name: "good.ca-cluster"}, relation.SeedVertex("a")).Reached,
		"B-8: the good one does not count")
	got, err := value(t, registry, "graph_undecodable_total", "Shoot")
	expect.True(t, err == nil && got == 1, "graph_undecodable_total: got %v, %v", got, err)
}
