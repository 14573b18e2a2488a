package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var pods, secrets = corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Secret")

// TestShape: what several features read of a kind is kept once, and none misses what another does not want.
func TestShape(t *testing.T) {
	read := func(kind schema.GroupVersionKind, form feature.Form, selector string) feature.Read {
		return feature.Read{Cluster: feature.Target, Kind: kind, Form: form, Selector: selector}
	}
	strip := read(secrets, feature.Whole, "")
	strip.Strip = feature.Stripping(func(secret *corev1.Secret) { secret.Data = nil })
	elsewhere := read(secrets, feature.Whole, "")
	elsewhere.Cluster = feature.Source
	local := read(pods, feature.Whole, "")
	local.Namespace, local.FieldSelector = "kube-system", "spec.nodeName=n"
	for name, c := range map[string]struct {
		reads                []feature.Read
		kinds                int
		labels, namespace    string
		fields               string
		stripsData, metadata bool
	}{
		"nothing of this cluster":                       {reads: []feature.Read{elsewhere}},
		"live and streamed reads keep nothing":          {reads: []feature.Read{read(pods, feature.Live, ""), read(pods, feature.Stream, "")}},
		"one reader's selector":                         {reads: []feature.Read{read(pods, feature.Whole, "a=b")}, kinds: 1, labels: "a=b"},
		"the same selector of two":                      {reads: []feature.Read{read(pods, feature.Whole, "a=b"), read(pods, feature.Whole, "a=b")}, kinds: 1, labels: "a=b"},
		"selectors that differ: all is kept":            {reads: []feature.Read{read(pods, feature.Whole, "a=b"), read(pods, feature.Whole, "")}, kinds: 1},
		"the metadata alone":                            {reads: []feature.Read{read(pods, feature.Metadata, "a=b")}, kinds: 1, labels: "a=b", metadata: true},
		"whole and metadata are kept apart":             {reads: []feature.Read{read(pods, feature.Whole, ""), read(pods, feature.Metadata, "")}, kinds: 2},
		"the only reader strips":                        {reads: []feature.Read{strip}, kinds: 1, stripsData: true},
		"one of two readers strips: nothing is removed": {reads: []feature.Read{strip, read(secrets, feature.Whole, "")}, kinds: 1},
		"two readers strip it":                          {reads: []feature.Read{strip, strip}, kinds: 1, stripsData: true},
		"one namespace and a field":                     {reads: []feature.Read{local}, kinds: 1, namespace: "kube-system", fields: "spec.nodeName=n"},
		"one of two reads one namespace":                {reads: []feature.Read{local, read(pods, feature.Whole, "")}, kinds: 1},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := CacheOptions(feature.Target, Options{Scheme: scheme.Scheme, Reads: c.reads})
			must.True(t, err == nil && len(options.ByObject) == c.kinds, "got %v, %v", options.ByObject, err)
			if c.kinds != 1 {
				return
			}
			for object, by := range options.ByObject {
				_, isMetadata := object.(*metav1.PartialObjectMetadata)
				expect.Equal(t, isMetadata, c.metadata, "got %T", object)
				expect.Equal(t, textOf(by.Label), c.labels, "selector")
				expect.Equal(t, textOf(by.Field), c.fields, "field selector")
				_, found := by.Namespaces[c.namespace]
				expect.Equal(t, found, c.namespace != "", "namespaces %v", by.Namespaces)
				must.Equal(t, by.Transform != nil, c.stripsData, "strips: %t", by.Transform != nil)
				if c.stripsData {
					kept, err := by.Transform(&corev1.Secret{Data: map[string][]byte{"a": nil}, ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{}}}})
					secret := kept.(*corev1.Secret)
					expect.True(t, err == nil && secret.Data == nil && secret.ManagedFields == nil, "got %v, %v", kept, err)
				}
			}
		})
	}
	if _, err := CacheOptions(feature.Target, Options{Scheme: scheme.Scheme, Reads: []feature.Read{read(schema.GroupVersionKind{}, feature.Whole, "")}}); err == nil {
		t.Error("a read without a kind")
	}
	if _, err := CacheOptions(feature.Target, Options{Scheme: scheme.Scheme, Reads: []feature.Read{read(pods, feature.Whole, "a==b==c")}}); err == nil || !strings.Contains(err.Error(), "Pod") {
		t.Errorf("a selector that is none: got %v", err)
	}
}

func textOf[S interface {
	comparable
	String() string
}](selector S) string {
	var none S
	if selector == none {
		return ""
	}
	return selector.String()
}

// TestKept: what a feature reads is kept once its cluster answers, however late; and it is synced when all of it is there.
func TestKept(t *testing.T) {
	var mu sync.Mutex
	away, asked := true, map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refuse := away
		asked[r.URL.Path]++
		mu.Unlock()
		if refuse {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		answer(w, r)
	}))
	defer server.Close()
	connection := Connection{REST: &rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, HTTP: server.Client()}
	reads := []feature.Read{{Cluster: feature.Target, Kind: pods, Resource: "pods", Form: feature.Metadata}, {Cluster: feature.Target, Kind: secrets, Resource: "secrets", Form: feature.Whole, Optional: true}}
	cluster, err := connection.Caching(feature.Target, Options{Scheme: scheme.Scheme, Reads: reads})
	must.Succeed(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go cluster.Start(ctx) //nolint:errcheck // it ends with the test
	kept, err := Keep(map[feature.Cluster]*Cluster{feature.Target: cluster}, reads, clock.RealClock{}, logr.Discard())
	must.Succeed(t, err)
	done := make(chan error, 1)
	go func() { done <- kept.Start(ctx) }()
	await(ctx, t, func() bool { mu.Lock(); defer mu.Unlock(); return len(asked) > 0 })
	expect.False(t, kept.Synced(), "synced while the cluster is away")
	got := kept.Awaited(feature.Target)
	expect.True(t, len(got) == 1 && len(kept.Awaited(feature.Source)) == 0, "PRC-54: waits for %v", got)
	must.Succeed(t, kept.Await(ctx))
	must.Succeed(t, <-done)
	expect.False(t, kept.Synced(), "synced while the cluster is away, though it is known what to follow")
	mu.Lock()
	away = false
	mu.Unlock()
	await(ctx, t, func() bool { return kept.Synced() && cluster.Synced(time.Second) })
	expect.Empty(t, kept.Awaited(feature.Target), "PRC-54: waits for")
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(pods)
	if err := cluster.Cache.Get(ctx, client.ObjectKey{Namespace: "n", Name: "p"}, pod); err != nil || pod.UID != "u" {
		t.Errorf("got %v, %v", pod, err)
	}
	expect.ErrorContains(t, cluster.Cache.Get(ctx, client.ObjectKey{Namespace: "n", Name: "s"}, &corev1.Service{}), "not cached",
		"what nobody declared to read is not read in silence")
	expect.Succeed(t, cluster.Client.Get(ctx, client.ObjectKey{Namespace: "n", Name: "p"}, pod),
		"the client asks the API server")
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, asked["/api/v1/secrets"], 0, "a kind that may not be there is left to its feature")
}

// TestKeepNothing: whoever reads nothing waits for nothing.
func TestKeepNothing(t *testing.T) {
	kept, err := Keep(nil, []feature.Read{{Cluster: feature.Target, Kind: pods, Form: feature.Live}}, clock.RealClock{}, logr.Discard())
	must.Succeed(t, err)
	if err := kept.Start(t.Context()); err != nil || !kept.Synced() || kept.Await(t.Context()) != nil {
		t.Errorf("got %v", err)
	}
	if _, err := Keep(nil, []feature.Read{{Cluster: feature.Garden, Kind: pods, Form: feature.Whole}}, clock.RealClock{}, logr.Discard()); err == nil {
		t.Error("a cluster that is not there")
	}
}

// answer is that of an API server with a Pod.
func answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	pod := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "5"}}
	var body any
	switch {
	case r.URL.Path == "/api":
		body = metav1.APIVersions{Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		body = metav1.APIGroupList{}
	case r.URL.Path == "/api/v1":
		body = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "services", Kind: "Service", Namespaced: true}}}
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			encoder := json.NewEncoder(w)
			pod.APIVersion, pod.Kind = "meta.k8s.io/v1", "PartialObjectMetadata"
			_ = encoder.Encode(map[string]any{"type": "ADDED", "object": pod})
			pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			_ = encoder.Encode(map[string]any{"type": "BOOKMARK", "object": pod})
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
		return
	case strings.HasSuffix(r.URL.Path, "/p"):
		pod.APIVersion, pod.Kind = "meta.k8s.io/v1", "PartialObjectMetadata"
		body = pod
	default:
		body = metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []metav1.PartialObjectMetadata{pod}}
	}
	_ = json.NewEncoder(w).Encode(body)
}

func await(ctx context.Context, t *testing.T, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatal("it did not happen")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
