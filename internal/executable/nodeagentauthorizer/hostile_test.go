package nodeagentauthorizer

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/endpoint/authorization"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/rules"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/tenants"
	"github.com/espalier-project/espalier/internal/nodeagentauthorizer/view"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// apiServer answers one of the requests of a view.
type apiServer func(w http.ResponseWriter, r *http.Request)

const bookmark = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// honest has one Node, and Pods on it.
func honest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !isWatch(r) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"NotFound","code":404,"details":{"name":"x"}}`)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		_, _ = fmt.Fprintln(w, `{"type":"ADDED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"1"}}}`)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		for i := range 100 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"metadata":{"namespace":"a","name":"p%d","resourceVersion":"1"},"spec":{"nodeName":"n"}}}`+"\n", i)
		}
	}
	_, _ = io.WriteString(w, bookmark)
	flush(w)
	<-r.Context().Done()
}

// paged has the API server refuse streams of initial events, so that lists are read in pages.
func paged(list apiServer) apiServer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if isWatch(r) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		list(w, r)
	}
}

// streamed begins a stream.
func streamed(events apiServer) apiServer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !isWatch(r) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		events(w, r)
	}
}

// write writes texts until the client is gone.
func write(w http.ResponseWriter, r *http.Request, text func(i int) string) {
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := io.WriteString(w, text(i)); err != nil {
			return
		}
	}
}

var (
	long       = strings.Repeat("x", 240)
	manyItems  = `{"metadata":{"resourceVersion":"1"},"items":[{}` + strings.Repeat(",{}", 5<<20) + "]}"
	manyOwners = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1","\u006fwnerReferences":[{}` + strings.Repeat(",{}", 600_000) + "]}}}\n"
	manyLabels = func() string {
		var labels strings.Builder
		for i := range 600_000 {
			_, _ = fmt.Fprintf(&labels, `"%x":"",`, i)
		}
		return `{"type":"ADDED","object":{"metadata":{"name":"a","labels":{` + labels.String() + `"":""}}}}` + "\n"
	}()
)

// object has texts as long as may be, each of them once.
func object(i int) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"a%d%s","name":"n%d%s","uid":"u%d","resourceVersion":"1","labels":{"worker.gardener.cloud/pool":"p%d%s"}},"spec":{"nodeName":"m%d%s","username":"v%d%s"}}`,
		i, long, i, long, i, i, long, i, long, i, long)
}

// hostile are API servers that try to take the memory of the process; refused is the reason that their agents get.
var hostile = map[string]struct {
	apiServer
	refused string
}{
	"a list without an end": {paged(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1","continue":"c"},"items":[`)
		for i := range 500 {
			_, _ = io.WriteString(w, strings.Repeat(",", min(i, 1))+object(int(lists.Add(1))))
		}
		_, _ = io.WriteString(w, `]}`)
	}), "exceeds its limits"},
	"pages without objects": {paged(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1","continue":"c"},"items":[]}`)
	}), "not complete after 2s"},
	"a stream without an end": {streamed(func(w http.ResponseWriter, r *http.Request) {
		write(w, r, func(i int) string { return `{"type":"ADDED","object":` + object(i) + "}\n" })
	}), "exceeds its limits"},
	"events without an end": {streamed(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, bookmark)
		write(w, r, func(i int) string { return `{"type":"ADDED","object":` + object(i) + "}\n" })
	}), "exceeds its limits"},
	"a huge object": {streamed(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`)
		write(w, r, func(int) string { return strings.Repeat("x", 64<<10) })
	}), "an event is longer than"},
	"objects with many labels": {streamed(func(w http.ResponseWriter, r *http.Request) {
		write(w, r, func(int) string { return manyLabels })
	}), "an object is too large"},
	"objects with many owners": {streamed(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, manyOwners+bookmark)
		flush(w)
		<-r.Context().Done()
	}), `"denied":true`},
	"a name that is too long": {streamed(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"`+long+long+`"}}}`+"\n")
	}), "a name has 480 bytes"},
	"a huge page": {paged(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"`)
		write(w, r, func(int) string { return strings.Repeat("x", 64<<10) })
	}), "exceeds its limits"},
	"a page of many objects": {paged(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, manyItems)
	}), "a page has more than 500 objects"},
	"a list without a kind, with a long token": {paged(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1","continue":"`)
		write(w, r, func(int) string { return strings.Repeat("x", 64<<10) })
	}), "exceeds its limits"},
	"errors without an end": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		write(w, r, func(int) string { return strings.Repeat(`{},`, 64<<10) })
	}, "not synced yet"},
	"answers 101": {func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Type: application/json\r\n\r\n")
		for range 1000 {
			if _, err := c.Write(bytes.Repeat([]byte(`{},`), 1<<18)); err != nil {
				return
			}
		}
	}, "not synced yet"},
	"redirects": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/elsewhere", http.StatusTemporaryRedirect)
	}, "not synced yet"},
}

var lists atomic.Int64

// shoots are a process that serves many shoots, and what answers for each.
type shoots struct {
	t       *testing.T
	process *Process
	served  map[string]tenants.Handler
}

func newShoots(t *testing.T) *shoots {
	cfg := &configuration{ShootsDirectory: t.TempDir()}
	config.SetDefaults(cfg)
	cfg.ShootLimits.ListTimeout.Duration = 2 * time.Second
	registry := prometheus.NewRegistry()
	return &shoots{t, &Process{
		Config: cfg, metrics: rules.NewMetrics(registry), differences: authorization.NewDifferences(registry, clock.RealClock{}),
		views: view.NewMetrics(registry), bodies: authorization.NewBodies(), log: logr.Discard(),
	}, map[string]tenants.Handler{}}
}

func (s *shoots) add(name string, api apiServer) {
	s.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(api))
	s.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	entry := &config.ShootEntry{}
	config.SetDefaultsEntry(entry)
	entry.TargetClientConnection.Kubeconfig = filepath.Join(s.process.Config.ShootsDirectory, name)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.Succeed(s.t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server.URL, CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, entry.TargetClientConnection.Kubeconfig))
	served, err := s.process.serveEntry(s.t.Context(), name, entry)
	must.Succeed(s.t, err)
	s.served[name] = served
}

// review returns the answer about an agent and a Pod.
func (s *shoots) review(shoot, pod string) string {
	body, _ := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": map[string]any{
		"user": rules.UserPrefix + "n", "groups": []string{rules.AgentsGroup},
		"resourceAttributes": map[string]any{"verb": "get", "resource": "pods", "namespace": "a", "name": pod},
	}})
	request := httptest.NewRequest(http.MethodPost, rules.Path+"/"+shoot, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	s.served[shoot].ServeHTTP(recorder, request)
	return recorder.Body.String()
}

// TestHostileShoots: whatever the API server of one shoot answers, the process takes at most 64 MiB more, the agents of ten other shoots are
// answered throughout, and those of the hostile one are refused with the reason (NAA-12).
func TestHostileShoots(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // So that the heap has little garbage.
	for name, c := range hostile {
		t.Run("NAA-12/"+name, func(t *testing.T) {
			s := newShoots(t)
			for i := range 10 {
				s.add(fmt.Sprint("honest-", i), honest)
			}
			honestAllowed := func(i int) bool {
				return strings.Contains(s.review(fmt.Sprint("honest-", i%10), fmt.Sprint("p", i%100)), `"allowed":true`)
			}
			for i := range 10 {
				eventually(t, fmt.Sprintf("honest shoot %d is answered", i), func() bool { return honestAllowed(i) })
			}
			runtime.GC()
			before, largest := heap(), heap()
			s.add("hostile", c.apiServer)
			seen := func(i int) bool {
				must.True(t, honestAllowed(i), "honest shoot %d is refused: %s", i%10, s.review(fmt.Sprint("honest-", i%10), "p0"))
				largest = max(largest, heap())
				answer := s.review("hostile", "p0")
				return strings.Contains(answer, c.refused) && strings.Contains(answer, `"denied":true`)
			}
			at := 0
			eventually(t, "the agents of the hostile shoot are refused: "+c.refused, func() bool { at++; return seen(at) })
			for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); at++ {
				seen(at)
			}
			t.Logf("%d MiB more, %s", (int64(largest)-int64(before))>>20, s.review("hostile", "p0"))
			grown := int64(largest) - int64(before)
			expect.True(t, grown <= 64<<20, "the heap is %d MiB larger", grown>>20)
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		must.False(t, time.Now().After(deadline), "never: %s", what)
	}
}
