// Package kubectl runs kubectl-espalier as a process against a source and a target whose API servers refuse every write and count requests.
package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/harness"
)

var (
	landscape      *harness.Landscape
	plugin         string
	source, target *front
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, "kubectl", false, func(ctx context.Context, s *harness.Suite) (func() error, error) {
		landscape, plugin = s.Landscape, filepath.Join(s.Dir, "kubectl-espalier")
		if err := os.Symlink(s.Binary, plugin); err != nil {
			return nil, err
		}
		var err error
		if source, err = newFront(s.Dir, "source", s.SeedREST); err != nil {
			return nil, err
		}
		if target, err = newFront(s.Dir, "target", s.ShootREST); err != nil {
			return nil, err
		}
		// Drift stays long enough to be looked at.
		p, err := harness.Run(harness.ProcessOptions{Binary: s.Binary, Dir: filepath.Join(s.Dir, "process"), Source: s.Seed, Target: s.Shoot,
			Config: map[string]any{"controllers": map[string]any{"managedResource": map[string]any{"driftRepairDelay": "1h"}}}})
		if err != nil {
			return nil, err
		}
		if err := p.AwaitReady(ctx); err != nil {
			return nil, err
		}
		return func() error {
			p.Kill()
			if refused := append(source.refused, target.refused...); len(refused) > 0 {
				return fmt.Errorf("CLI-9: the verbs sent writes: %v", refused)
			}
			return nil
		}, nil
	}))
}

// front stands before an API server: it refuses every request that is not a GET, and counts the others.
type front struct {
	kubeconfig string

	mu      sync.Mutex
	sent    []string
	refused []string
}

func newFront(dir, name string, config *rest.Config) (*front, error) {
	at, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	f := &front{kubeconfig: filepath.Join(dir, name+".kubeconfig")}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.admits(r) {
			http.Error(w, "this API server takes no writes", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	return f, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: server.URL}}, AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {}},
		Contexts: map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}}, CurrentContext: name,
	}, f.kubeconfig)
}

func (f *front) admits(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, r.Method+" "+r.URL.Path)
	if r.Method == http.MethodGet {
		return true
	}
	f.refused = append(f.refused, r.Method+" "+r.URL.Path)
	return false
}

// taken returns what was sent since it was asked last.
func (f *front) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = nil
	return sent
}

// answer is what a command printed.
type answer struct {
	code           int
	stdout, stderr string
	requests       []string
	took           time.Duration
}

// ask runs a verb with both clusters.
func ask(t *testing.T, arguments ...string) answer {
	t.Helper()
	source.taken()
	target.taken()
	command := exec.CommandContext(t.Context(), plugin, append(arguments, "--kubeconfig="+source.kubeconfig, "--target-kubeconfig="+target.kubeconfig)...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	began := time.Now()
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return answer{command.ProcessState.ExitCode(), out.String(), errOut.String(), append(source.taken(), target.taken()...), time.Since(began)}
}

func decoded[T any](t *testing.T, a answer) T {
	t.Helper()
	var into T
	if err := json.Unmarshal([]byte(a.stdout), &into); err != nil {
		t.Fatalf("exit code %d, %s: %v\n%s", a.code, a.stderr, err, a.stdout)
	}
	return into
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	must(t, harness.Poll(t.Context(), 40*time.Second, check))
}

// namespace makes a namespace in both clusters.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-"}}
	must(t, landscape.SeedClient.Create(t.Context(), ns))
	must(t, landscape.ShootClient.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	return ns.Name
}

// apply has resource-manager apply manifests.
func apply(t *testing.T, ns, name, manifests string) {
	t.Helper()
	must(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, name, map[string][]byte{"all.yaml": []byte(manifests)}), client.FieldOwner("gardenlet")))
	must(t, landscape.SeedClient.Create(t.Context(), harness.ManagedResource(ns, name, name)))
	eventually(t, func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, mr); err != nil {
			return err
		}
		if status, message := harness.Condition(mr, resourcesv1alpha1.ResourcesApplied); !strings.HasPrefix(status, "True/") {
			return fmt.Errorf("%s %s", status, message)
		}
		return nil
	})
}
