package targets

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/cluster/answers"
	"github.com/espalier-project/espalier/internal/feature"
	"github.com/espalier-project/espalier/internal/managedresource/engine"
	"github.com/espalier-project/espalier/test/fake"

	corev1 "k8s.io/api/core/v1"
)

// seed is a world in memory: a source, its targets, and the process that looks after them, in a bubble of time.
type seed struct {
	t       *testing.T
	lock    sync.Mutex
	source  *fake.Server
	targets map[string]*shoot
	*Targets
	registry *prometheus.Registry

	mu sync.Mutex
	// drifted counts the objects that drifted.
	drifted int
	// asked counts the process's requests by cluster and verb.
	asked map[string]int
}

// shoot is a target.
type shoot struct {
	*fake.Server
	seed *seed
	name string
	// meet, if it is set, answers in place of the API server; nil, nil passes the request on.
	meet func(*http.Request) (*http.Response, error)
	// tokens are those that were used, in their order, each once in a row.
	tokens []string
}

const label = "espalier/many"

func TestMain(m *testing.M) {
	// The library's own remember, across bubbles, when there last was an error.
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// inBubble runs a test with a seed whose targets have the names, until it ends.
func inBubble(t *testing.T, change func(*config.ResourceManagerConfiguration), names []string, test func(*seed)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeed(t, names)
		end := s.start(change)
		defer end()
		test(s)
	})
}

func newSeed(t *testing.T, names []string) *seed {
	s := &seed{t: t, targets: map[string]*shoot{}, asked: map[string]int{}}
	kinds := append(fake.BuiltIn(), fake.CustomKind("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true),
		fake.BuiltInKind("coordination.k8s.io", "v1", "Lease", "leases", true))
	s.source = fake.New(&s.lock, kinds, nil)
	s.source.QuietEnd = true
	s.must(s.source, http.MethodPost, "/api/v1/namespaces", object("v1", "Namespace", "", "garden"))
	for i, name := range names {
		server := fake.New(&s.lock, fake.BuiltIn(), nil, "default")
		server.Cluster, server.QuietEnd = i+1, true
		s.targets[name] = &shoot{Server: server, seed: s, name: name}
		s.must(s.source, http.MethodPost, "/api/v1/namespaces", object("v1", "Namespace", "", name, "metadata.labels", map[string]any{label: "true"}))
	}
	return s
}

// RoundTrip is how the process reaches the source.
func (s *seed) RoundTrip(request *http.Request) (*http.Response, error) {
	s.count("source", request)
	return (&fake.Transport{Server: s.source, By: "process"}).RoundTrip(request)
}

func (s *seed) count(cluster string, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := request.Method
	if strings.Contains(request.URL.Path, "/leases") {
		verb = "lease " + verb
	} else if verb == http.MethodGet {
		verb = "read"
		if answers.IsWatch(request) {
			verb = "watch " + request.URL.Path
		}
	} else if strings.HasSuffix(request.URL.Path, "/events") {
		verb = "event"
	}
	s.asked[cluster+" "+verb]++
}

// sent returns how many requests of a cluster begin like this.
func (s *seed) sent(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for what, times := range s.asked {
		if strings.HasPrefix(what, prefix) {
			n += times
		}
	}
	return n
}

// writes returns how many writes there were to a cluster.
func (s *seed) writes(cluster string) (n int) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		n += s.sent(cluster + " " + method)
	}
	return n
}

// RoundTrip is how the process reaches a target.
func (s *shoot) RoundTrip(request *http.Request) (*http.Response, error) {
	s.seed.count(s.name, request)
	s.seed.mu.Lock()
	meet := s.meet
	if token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "); len(s.tokens) == 0 || s.tokens[len(s.tokens)-1] != token {
		s.tokens = append(s.tokens, token)
	}
	s.seed.mu.Unlock()
	if meet != nil {
		if response, err := meet(request); response != nil || err != nil {
			return response, err
		}
	}
	return (&fake.Transport{Server: s.Server, By: "process"}).RoundTrip(request)
}

// meets has requests of the process answered by a function from now on.
func (s *shoot) meets(meet func(*http.Request) (*http.Response, error)) {
	s.seed.mu.Lock()
	defer s.seed.mu.Unlock()
	s.meet = meet
}

// configuration is that of a process for all namespaces with the label.
func configuration() *config.ResourceManagerConfiguration {
	cfg := &config.ResourceManagerConfiguration{}
	cfg.LeaderElection.LeaderElect = ptr.To(false)
	cfg.LeaderElection.ResourceNamespace = "garden"
	cfg.Controllers.ClusterID = ptr.To("seed")
	cfg.Targets = &config.TargetsConfiguration{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "true"}},
		Kubeconfig:        &config.SecretKey{SecretName: "access"}, Overrides: &config.SecretKey{SecretName: "overrides"},
	}
	return cfg
}

// start runs the process; the returned function ends it.
func (s *seed) start(change func(*config.ResourceManagerConfiguration)) func() {
	end := s.launch(change, func(inner http.RoundTripper) http.RoundTripper { return inner })
	return func() {
		if err := end(); err != nil {
			s.t.Errorf("the process ended with %v", err)
		}
		s.rest()
	}
}

// rest lets time pass until all that is timed, such as the end of a bucket, is over.
func (s *seed) rest() {
	time.Sleep(time.Hour)
	synctest.Wait()
}

// launch runs a process, whose requests go through what by returns; the returned function ends it.
func (s *seed) launch(change func(*config.ResourceManagerConfiguration), by func(http.RoundTripper) http.RoundTripper) func() error {
	cfg := configuration()
	if change != nil {
		change(cfg)
	}
	config.SetDefaults(cfg)
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		s.t.Fatal(err)
	}
	source := &rest.Config{Host: "http://source", QPS: -1, Transport: Fair(by(s), 0, 0), WarningHandler: rest.NoWarnings{}, UserAgent: rest.DefaultKubernetesUserAgent()}
	source.ContentType = "application/json"
	scheme, err := engine.Scheme()
	if err != nil {
		s.t.Fatal(err)
	}
	reads := append(engine.Reads(cfg), feature.Read{
		Cluster: feature.Source, Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", ClusterScoped: true,
		Form: feature.Metadata, Selector: label + "=true",
	})
	kept := cluster.Options{Scheme: scheme, Reads: reads, Resync: &cfg.SourceClientConnection.CacheResyncPeriod.Duration}
	cache, err := cluster.CacheOptions(feature.Source, kept)
	if err != nil {
		s.t.Fatal(err)
	}
	mgr, err := manager.New(source, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Cache: cache, MapperProvider: cluster.Mapper(feature.Source, reads),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfigAndClient(source, mgr.GetHTTPClient())
	if err != nil {
		s.t.Fatal(err)
	}
	s.registry = prometheus.NewRegistry()
	s.Targets = New(Options{
		Config: cfg, Manager: mgr, Source: clientset, Clock: clock.RealClock{}, Registry: s.registry, Log: logr.Discard(),
		Load: func(content []byte) (*rest.Config, error) {
			loaded, err := clientcmd.RESTConfigFromKubeConfig(content)
			if err == nil {
				loaded.ContentType = "application/json"
			}
			return loaded, err
		},
		Dial: func(c *rest.Config) (*Connections, error) {
			name := strings.TrimPrefix(c.Host, "https://")
			if s.targets[name] == nil {
				return nil, fmt.Errorf("no such host %q", c.Host)
			}
			wrapped, err := rest.HTTPWrappersForConfig(c, by(s.targets[name]))
			return &Connections{wrapped, wrapped, func() {}}, err
		},
	})
	for _, part := range []manager.Runnable{s.Targets, s.Leases()} {
		if err := mgr.Add(part); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

// object is one with some fields, by their paths.
func object(apiVersion, kind, namespace, name string, fields ...any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for i := 0; i < len(fields); i += 2 {
		parts := strings.Split(fields[i].(string), ".")
		in := o
		for _, part := range parts[:len(parts)-1] {
			next, _ := in[part].(map[string]any)
			if next == nil {
				next = map[string]any{}
				in[part] = next
			}
			in = next
		}
		in[parts[len(parts)-1]] = fields[i+1]
	}
	return o
}

// must sends a request as somebody else than the process.
func (s *seed) must(server *fake.Server, method, path string, body map[string]any) map[string]any {
	s.t.Helper()
	code, answer := send(server, method, path, body)
	if code >= 300 {
		s.t.Fatalf("%s %s: %d %v", method, path, code, answer)
	}
	return answer
}

func send(server *fake.Server, method, path string, body map[string]any) (int, map[string]any) {
	content, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	request, err := http.NewRequest(method, "http://cluster"+path, bytes.NewReader(content))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	response, err := (&fake.Transport{Server: server, By: "somebody"}).RoundTrip(request)
	if err != nil {
		panic(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	answer := map[string]any{}
	_ = json.Unmarshal(text, &answer)
	return response.StatusCode, answer
}

// secret is one with values.
func secret(namespace, name string, values map[string]string) map[string]any {
	data := map[string]any{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return object("v1", "Secret", namespace, name, "data", data)
}

// kubeconfig is that of a target.
func kubeconfig(target, token string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://%s"}}], users: [{name: u, user: {token: %s}}],
contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`, target, token)
}

// access gives the process the credentials of a target.
func (s *seed) access(target, token string) {
	s.t.Helper()
	content := secret(target, "access", map[string]string{"kubeconfig": kubeconfig(target, token)})
	if code, _ := send(s.source, http.MethodPost, "/api/v1/namespaces/"+target+"/secrets", content); code >= 300 {
		s.must(s.source, http.MethodPatch, "/api/v1/namespaces/"+target+"/secrets/access", content)
	}
}

// managed creates a ManagedResource with some ConfigMaps.
func (s *seed) managed(target, name string, configMaps int) {
	s.t.Helper()
	var manifest strings.Builder
	for i := range configMaps {
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: default}\ndata: {of: %s}\n", name, i, target)
	}
	s.must(s.source, http.MethodPost, "/api/v1/namespaces/"+target+"/secrets", secret(target, name, map[string]string{"data.yaml": manifest.String()}))
	s.must(s.source, http.MethodPost, "/apis/resources.gardener.cloud/v1alpha1/namespaces/"+target+"/managedresources",
		object("resources.gardener.cloud/v1alpha1", "ManagedResource", target, name, "spec.secretRefs", []any{map[string]any{"name": name}}, "spec.class", "resources"))
}

// configMap returns one of a target; nil if it is not there.
func (s *seed) configMap(target, name string) map[string]any {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.targets[target].GetLocked(fake.Key{GroupResource: schema.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: name})
}

// within fails unless something becomes true within a time of the bubble.
func (s *seed) within(limit time.Duration, what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); !holds(); {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %s: %s; states %v", limit, what, s.states())
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// states are those of the targets.
func (s *seed) states() map[string]State {
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	all := map[string]State{}
	for name, state := range s.metrics.current {
		all[name] = state
	}
	return all
}

// is reports whether a target is in a state.
func (s *seed) is(target string, state State) func() bool {
	return func() bool { return s.states()[target] == state }
}

// applied reports whether a ManagedResource of a target is applied and healthy.
func (s *seed) applied(target, name string) func() bool {
	return func() bool {
		s.lock.Lock()
		defer s.lock.Unlock()
		mr := s.source.GetLocked(fake.Key{GroupResource: schema.GroupResource{Group: "resources.gardener.cloud", Resource: "managedresources"}, Namespace: target, Name: name})
		status, _ := mr["status"].(map[string]any)
		conditions, _ := status["conditions"].([]any)
		found := 0
		for _, c := range conditions {
			condition := c.(map[string]any)
			if (condition["type"] == "ResourcesApplied" || condition["type"] == "ResourcesHealthy") && condition["status"] == "True" {
				found++
			}
		}
		return found == 2
	}
}

// drifts changes a ConfigMap of a target, and returns how long it takes until it is as it should be.
func (s *seed) drifts(target, name string, limit time.Duration) time.Duration {
	s.t.Helper()
	s.must(s.targets[target].Server, http.MethodPatch, "/api/v1/namespaces/default/configmaps/"+name, map[string]any{"data": map[string]any{"of": "somebody"}})
	began := time.Now()
	s.within(limit, "the drift of "+target+"/"+name+" is repaired", func() bool { return fake.Text(s.configMap(target, name), "data", "of") == target })
	return time.Since(began)
}

// counted is the value of a counter.
func counted(t *testing.T, registry *prometheus.Registry, name string) (total float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			total += m.GetCounter().GetValue()
		}
	}
	return total
}
