package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const patience = 40 * time.Second

func start(t *testing.T, config map[string]any, change ...func(*harness.ProcessOptions)) *harness.Process {
	t.Helper()
	o := harness.ProcessOptions{Binary: binary, Dir: filepath.Join(workDir, strings.ReplaceAll(t.Name(), "/", "-"), fmt.Sprint(time.Now().UnixNano())),
		Source: landscape.Seed, Target: landscape.Shoot, Config: config}
	for _, c := range change {
		c(&o)
	}
	p, err := harness.Run(o)
	must.Succeed(t, err)
	t.Cleanup(p.Kill)
	return p
}

func ready(t *testing.T, p *harness.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Succeed(t, p.AwaitReady(ctx))
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	must.Succeed(t, harness.Poll(t.Context(), patience, check))
}

func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), ns))
	must.Succeed(t, landscape.ShootClient.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}))
	return ns.Name
}

func configMaps(ns string, n int, value string) map[string][]byte {
	text := ""
	for i := range n {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm-%d, namespace: %s}\ndata: {a: '%s'}\n", i, ns, value)
	}
	return map[string][]byte{"data.yaml": []byte(text)}
}

func create(t *testing.T, ns, name string, data map[string][]byte) {
	t.Helper()
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.Secret(ns, name, data)))
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), harness.ManagedResource(ns, name, name)))
}

func settled(t *testing.T, ns, name string) *resourcesv1alpha1.ManagedResource {
	t.Helper()
	mr := &resourcesv1alpha1.ManagedResource{}
	eventually(t, func() error {
		if err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, mr); err != nil {
			return err
		}
		return harness.Settled(mr)
	})
	return mr
}

func listed(t *testing.T, ns string) map[string]corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	must.Succeed(t, landscape.ShootClient.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{resourcesv1alpha1.LabelManagedBy: "gardener"}))
	result := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		result[cm.Name] = cm
	}
	return result
}

func remove(t *testing.T, ns, name string) {
	t.Helper()
	must.Succeed(t, landscape.SeedClient.Delete(t.Context(), harness.ManagedResource(ns, name)))
	eventually(t, func() error {
		err := landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &resourcesv1alpha1.ManagedResource{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("ManagedResource is still there (%v)", err)
	})
}

// unescaped is what a process wrote, with the quotes that the log's JSON escapes.
func unescaped(p *harness.Process) string { return strings.ReplaceAll(p.Output(), `\"`, `"`) }

func TestKubeconfigAllowList(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(user string) {
		must.Succeed(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: x}}]\ncurrent-context: c\nusers: [{name: x, user: {"+user+"}}]\n"), 0o600))
	}
	for user, want := range map[string]string{
		"client-certificate: /file": `client certificate files are not supported (user "x"), these are the valid fields: [client-certificate-data client-key-data token username password tokenFile]`,
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}": "exec configurations are not supported",
		"as: someone": "impersonation is not supported",
	} {
		write(user)
		p := start(t, nil, func(o *harness.ProcessOptions) { o.TargetKubeconfig = kubeconfig })
		if code := p.Wait(patience); code != 1 || !strings.Contains(unescaped(p), want) {
			t.Errorf("CCH-2 %s: exit code %d, output %s", user, code, p.Output())
		}
	}
}

// TestProbesAndSignals: what probes say while the process runs, and how it ends.
func TestProbesAndSignals(t *testing.T) {
	p := start(t, map[string]any{"leaderElection": map[string]any{"leaderElect": true, "resourceNamespace": "default"}, "debugging": map[string]any{"enableProfiling": true}})
	ready(t, p)
	const readiness, liveness = "/readyz?verbose", "/healthz?verbose"
	rules := map[string]string{
		liveness + "[+]ping ok": "PRC-50", liveness + "[+]apiserver-healthz ok": "PRC-51", liveness + "[+]source-informer-sync ok": "PRC-52",
		liveness + "[+]target-informer-sync ok": "PRC-53", readiness + "[+]source-informer-sync ok": "PRC-54", readiness + "[+]target-informer-sync ok": "PRC-55",
		readiness + "[+]webhook-server ok": "CW-7/PRC-56",
	}
	for path, want := range map[string][]string{
		"/readyz?verbose":  {"[+]source-informer-sync ok", "[+]target-informer-sync ok", "[+]webhook-server ok"},
		"/healthz?verbose": {"[+]apiserver-healthz ok", "[+]ping ok", "[+]source-informer-sync ok", "[+]target-informer-sync ok"},
		"/healthz/ping":    {"ok"},
	} {
		// It was ready before it was the leader, and is once more when it has read what only the leader reads.
		eventually(t, func() error {
			status, body := p.Get(p.Health, path)
			for _, w := range want {
				if status != http.StatusOK || !strings.Contains(body, w) {
					return fmt.Errorf("%s: %s has no %s: %d %s", rules[path+w], path, w, status, body)
				}
			}
			return nil
		})
	}
	expect.Equal(t, expect.First(p.Get(p.Metrics, "/debug/pprof/")), http.StatusOK, "operations 2.7 profiling on")
	if status, body := p.Get(p.Metrics, "/debug/config"); status != http.StatusOK || !strings.Contains(body, "enableProfiling: true") || !strings.Contains(body, "syncPeriod: 1m0s") {
		t.Errorf("ASK-20 the effective configuration: %d %s", status, body)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/config"} {
		expect.Equal(t, expect.First(p.Get(p.Health, path)), http.StatusNotFound,
			"operations 2.7 never on the health port: %s", path)
	}
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: "default", Name: "gardener-resource-manager"}
	eventually(t, func() error {
		if err := landscape.SeedClient.Get(t.Context(), key, lease); err != nil {
			return err
		}
		return expect.Holds(lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", "PRC-20: no holder")
	})
	must.Succeed(t, p.Signal(syscall.SIGTERM))
	eventually(t, func() error {
		if status, body := p.Get(p.Health, "/readyz"); status == http.StatusOK {
			return fmt.Errorf("OPB-17: still ready: %s", body)
		}
		return nil
	})
	started := time.Now()
	if code := p.Wait(patience); code != 0 || time.Since(started) > 5*time.Second {
		t.Errorf("OPB-17: exit code %d after %s: %s", code, time.Since(started), p.Output())
	}
	must.Succeed(t, landscape.SeedClient.Get(t.Context(), key, lease))
	if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("OPB-17: the lease is held by %s", *lease.Spec.HolderIdentity)
	}

	p = start(t, nil)
	ready(t, p)
	for _, path := range []string{"/debug/pprof/", "/debug/config"} {
		expect.Equal(t, expect.First(p.Get(p.Metrics, path)), http.StatusNotFound, "operations 2.7 profiling off: %s", path)
	}
	must.Succeed(t, p.Signal(syscall.SIGTERM))
	eventually(t, func() error { // Two signals at once would be one.
		if status, _ := p.Get(p.Health, "/readyz"); status == http.StatusOK {
			return fmt.Errorf("still ready")
		}
		return nil
	})
	must.Succeed(t, p.Signal(syscall.SIGTERM))
	expect.Equal(t, p.Wait(patience), 1, "OPB-17: a second signal ends the process at once with 1")
}

func TestCertificates(t *testing.T) {
	certificates := filepath.Join(t.TempDir(), "tls")
	config := map[string]any{"server": map[string]any{"webhooks": map[string]any{"tls": map[string]any{"serverCertDir": certificates}}}}
	p := start(t, config)
	expect.Equal(t, p.Wait(patience), 1, "PRC-40 no certificate: exit code")
	must.Succeed(t, landscape.Seed.ServingCertificate(certificates))
	p = start(t, config)
	ready(t, p)
	serial := func() string {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.Web), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return ""
		}
		defer func() { _ = connection.Close() }()
		return connection.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial()
	must.Succeed(t, landscape.Seed.ServingCertificate(certificates))
	eventually(t, func() error {
		if now := serial(); now == before || now == "" {
			return fmt.Errorf("PRC-40: the certificate has not changed")
		}
		return nil
	})
}

// MRC-7c, BH-MR-34, OPB-8: where the name of the source comes from, and what happens where there is none.
func TestClusterIdentity(t *testing.T) {
	p := start(t, map[string]any{"controllers": map[string]any{"clusterID": "<cluster>"}})
	want := `unable to determine cluster id: cannot determine cluster identity from configmap: configmaps "cluster-identity" not found`
	if code := p.Wait(patience); code != 1 || !strings.Contains(unescaped(p), want) {
		t.Errorf("PRC-12: exit code %d, output %s", code, p.Output())
	}
	ns, other := namespace(t), namespace(t)
	create(t, other, "mr", configMaps(other, 1, "v"))
	p = start(t, map[string]any{"controllers": map[string]any{"clusterID": "<default>"}, "sourceClientConnection": map[string]any{"namespace": ns}})
	create(t, ns, "mr", configMaps(ns, 1, "v"))
	settled(t, ns, "mr")
	expect.Equal(t, listed(t, ns)["cm-0"].Annotations[resourcesv1alpha1.AnnotationOrigin], ns+"/mr", "MRC-7b/BH-MR-33")
	elsewhere := &resourcesv1alpha1.ManagedResource{}
	must.Succeed(t, landscape.SeedClient.Get(t.Context(), client.ObjectKey{Namespace: other, Name: "mr"}, elsewhere))
	expect.Equal(t, len(elsewhere.Finalizers)+len(elsewhere.Status.Conditions), 0,
		"BH-MR-12: a ManagedResource of another namespace is handled: %v", elsewhere.Status)
	must.Succeed(t, landscape.SeedClient.Delete(t.Context(), elsewhere))
	p.Stop()
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}, Data: map[string]string{"cluster-identity": "id"}}))
	t.Cleanup(func() {
		_ = landscape.SeedClient.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}})
	})
	start(t, map[string]any{"controllers": map[string]any{"clusterID": "<cluster>"}, "sourceClientConnection": map[string]any{"namespaces": []any{ns}}})
	eventually(t, func() error {
		if got := listed(t, ns)["cm-0"].Annotations[resourcesv1alpha1.AnnotationOrigin]; got != "id:"+ns+"/mr" {
			return fmt.Errorf("MRC-6: got %s", got)
		}
		return nil
	})
	remove(t, ns, "mr")
}

// OPB-25: with authentication nobody reads metrics whom the API server does not know or allow; who may sets the log level without a restart.
func TestAuthentication(t *testing.T) {
	p := start(t, map[string]any{"debugging": map[string]any{"authentication": map[string]any{"enabled": true}}})
	ready(t, p)
	admin, err := landscape.Seed.Admin()
	must.Succeed(t, err)
	clients, err := kubernetes.NewForConfig(admin)
	must.Succeed(t, err)
	token := func(name string, verbs ...string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		must.Succeed(t, landscape.SeedClient.Create(t.Context(), account))
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics", process.LogLevelPath}, Verbs: verbs}}}
		must.Succeed(t, landscape.SeedClient.Create(t.Context(), role))
		must.Succeed(t, landscape.SeedClient.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: name}},
		}))
		issued, err := clients.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		must.Succeed(t, err)
		return issued.Status.Token
	}
	scraper, operator := token("scraper", "get"), token("operator", "get", "put")
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ask := func(method, path, token, body string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("https://127.0.0.1:%d%s", p.Metrics, path), strings.NewReader(body))
		must.Succeed(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		must.Succeed(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		must.Succeed(t, err)
		return response.StatusCode, string(text)
	}
	// The authorizer knows of a grant a moment later; a refusal counts for ten seconds.
	eventually(t, func() error {
		if status, body := ask("GET", "/metrics", scraper, ""); status != http.StatusOK || !strings.Contains(body, "espalier_build_info") {
			return fmt.Errorf("OPB-25: who may scrape: %d %.200s", status, body)
		}
		return nil
	})
	for name, c := range map[string]struct {
		method, path, token string
		want                int
	}{
		"nobody's token":        {"GET", "/metrics", "nobody", http.StatusUnauthorized},
		"another path":          {"GET", "/debug/config", scraper, http.StatusForbidden},
		"the level of somebody": {"PUT", process.LogLevelPath, scraper, http.StatusForbidden},
	} {
		if status, body := ask(c.method, c.path, c.token, "debug"); status != c.want {
			t.Errorf("OPB-25: %s: %d %s", name, status, body)
		}
	}
	eventually(t, func() error {
		if status, body := ask("PUT", process.LogLevelPath, operator, "debug"); status != http.StatusOK || body != "debug\n" {
			return fmt.Errorf("OPB-25: who may set the level: %d %s", status, body)
		}
		return nil
	})
	if output := p.Output(); !strings.Contains(output, `"msg":"Setting the log level","from":"info","to":"debug"`) || strings.Contains(output, operator) || strings.Contains(output, scraper) {
		t.Errorf("OPB-25: the log has %s", output)
	}
}
