package process

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/cluster"
	"github.com/espalier-project/espalier/internal/reflector"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// redirecting is an API server that answers with a status and an address, at the paths below /away. It serves TLS, as its inner
// neighbour does with a certificate of the same authority.
type redirecting struct {
	*httptest.Server
	status         int
	to             string
	inner          *httptest.Server
	visits, served atomic.Int64
}

func newRedirecting(t *testing.T) *redirecting {
	r := &redirecting{}
	r.inner = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.visits.Add(1)
		http.Error(w, "of an inner service", http.StatusTeapot)
	}))
	t.Cleanup(r.inner.Close)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/here" {
			r.served.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`))
			return
		}
		w.Header().Set("Location", r.to)
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// kubeconfig returns a kubeconfig of the server, with a token.
func (r *redirecting) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	must.Succeed(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: r.URL, CertificateAuthorityData: authority}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, file))
	return file
}

// TestRESTConfig_Redirects: a redirect of a write, and one to another host, is an error that names the address (CCH-62).
func TestRESTConfig_Redirects(t *testing.T) {
	r := newRedirecting(t)
	file := r.kubeconfig(t)
	for name, load := range map[string]func() (*rest.Config, error){
		"RESTConfig":   func() (*rest.Config, error) { return RESTConfig(&shared.ClientConnection{Kubeconfig: file}) },
		"TenantConfig": func() (*rest.Config, error) { return TenantConfig(&shared.ClientConnection{Kubeconfig: file}) },
		"Kubeconfig": func() (*rest.Config, error) {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			return Kubeconfig(content)
		},
	} {
		config, err := load()
		must.Succeed(t, err)
		config.QPS = -1
		for request, send := range requests(t, config) {
			isRead := strings.HasPrefix(request, "get ")
			for _, status := range []int{301, 302, 303, 307, 308} {
				r.status, r.to = status, r.inner.URL+"/inner"
				if err := send(t.Context()); err == nil || !strings.Contains(err.Error(), r.to) || r.visits.Load() > 0 {
					t.Fatalf("CCH-62/%s/%s/%d to another host: got %v, %d visits", name, request, status, err, r.visits.Load())
				}
				r.to = "/here"
				err := send(t.Context())
				if served := r.served.Swap(0); isRead != (served == 1) || isRead != (err == nil) && request != "get discovery" {
					t.Errorf("CCH-62/%s/%s/%d to the same host: got %v, served %d times", name, request, status, err, served)
				}
			}
			r.status = http.StatusSwitchingProtocols
			expect.ErrorContains(t, send(t.Context()), "another protocol", "CCH-62/%s/%s/another protocol", name, request)
		}
	}
}

// requests are those of each library that makes clients of a configuration, by its method and library.
func requests(t *testing.T, config *rest.Config) map[string]func(context.Context) error {
	t.Helper()
	connection, err := cluster.Connect(config)
	must.Succeed(t, err)
	own, err := connection.Own()
	must.Succeed(t, err)
	clientset, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	dynamicClient, err := dynamic.NewForConfigAndClient(own.REST, own.HTTP)
	must.Succeed(t, err)
	metadataClient, err := metadata.NewForConfig(config)
	must.Succeed(t, err)
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(connection.REST, connection.HTTP)
	must.Succeed(t, err)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	runtimeClient, err := client.New(config, client.Options{HTTPClient: connection.HTTP, Mapper: mapper})
	must.Succeed(t, err)
	slices, err := reflector.NewClient(connection.REST, connection.HTTP, corev1.SchemeGroupVersion)
	must.Succeed(t, err)
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Data: map[string]string{"a": "b"}}
	}
	return map[string]func(context.Context) error{
		"get clientset": func(ctx context.Context) error {
			_, err := clientset.CoreV1().ConfigMaps("n").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"post clientset": func(ctx context.Context) error {
			_, err := clientset.CoreV1().ConfigMaps("n").Create(ctx, object(), metav1.CreateOptions{})
			return err
		},
		"put clientset": func(ctx context.Context) error {
			_, err := clientset.CoreV1().ConfigMaps("n").Update(ctx, object(), metav1.UpdateOptions{})
			return err
		},
		"get dynamic": func(ctx context.Context) error {
			_, err := dynamicClient.Resource(maps).Namespace("n").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"patch dynamic": func(ctx context.Context) error {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
			_, err := dynamicClient.Resource(maps).Namespace("n").Apply(ctx, "a", u, metav1.ApplyOptions{FieldManager: "m"})
			return err
		},
		"delete metadata": func(ctx context.Context) error {
			return metadataClient.Resource(maps).Namespace("n").Delete(ctx, "a", metav1.DeleteOptions{})
		},
		"get discovery": func(context.Context) error {
			_, err := discoveryClient.ServerVersion()
			return err
		},
		"get controller-runtime": func(ctx context.Context) error {
			return runtimeClient.Get(ctx, client.ObjectKeyFromObject(object()), object())
		},
		"post controller-runtime": func(ctx context.Context) error { return runtimeClient.Create(ctx, object()) },
		"get reflector": func(ctx context.Context) error {
			return reflector.Into(ctx, slices, "configmaps", "n", "a", &metav1.PartialObjectMetadata{})
		},
	}
}
