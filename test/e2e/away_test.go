package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	resourcesv1alpha1 "github.com/espalier-project/espalier/api/resources/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// A source that is away at the start is waited for.
func TestSourceIsAwayAtTheStart(t *testing.T) {
	kubeconfig, err := clientcmd.LoadFromFile(landscape.Seed.Kubeconfig)
	must.Succeed(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	address := listener.Addr().String()
	must.Succeed(t, listener.Close())
	var server string
	for _, c := range kubeconfig.Clusters {
		at, err := url.Parse(c.Server)
		must.Succeed(t, err)
		server, c.Server = at.Host, "https://"+address
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, clientcmd.WriteToFile(*kubeconfig, path))
	must.Succeed(t, os.Chmod(path, 0o600))

	ns := namespace(t)
	p := start(t, map[string]any{"sourceClientConnection": map[string]any{"kubeconfig": path, "namespace": ns}})
	eventually(t, func() error {
		if status, body := p.Get(p.Health, "/readyz"); status != http.StatusInternalServerError || !strings.Contains(body, "managedresources failed") {
			return fmt.Errorf("readyz is %d: %s", status, body)
		}
		return expect.Holds(strings.Contains(p.Output(), "Waiting for the source cluster"), "the log does not say what is waited for")
	})

	listener, err = net.Listen("tcp", address)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go forward(listener, server)
	ready(t, p)
	create(t, ns, "mr", configMaps(ns, 1, "v"))
	settled(t, ns, "mr")
}

// A right that is missing is named, and ends the start in time.
func TestMissingRightIsNamed(t *testing.T) {
	ns := namespace(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mr"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{resourcesv1alpha1.SchemeGroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), role))
	must.Succeed(t, landscape.SeedClient.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "mr"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "mr"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "without-secrets"}},
	}))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, landscape.Seed.WriteKubeconfig(path, "without-secrets"))
	p := start(t, map[string]any{
		"sourceClientConnection": map[string]any{"kubeconfig": path, "namespaces": []string{ns}},
		"controllers":            map[string]any{"cacheSyncTimeout": "3s"},
	})
	want := fmt.Sprintf("the right to list secrets in namespace %q is missing", ns)
	if code := p.Wait(patience); code != 1 || !strings.Contains(unescaped(p), want) {
		t.Errorf("exit code %d, output %s", code, p.Output())
	}
}

// forward connects whoever comes with a server, until the listener is closed.
func forward(listener net.Listener, server string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
		go func() { _, _ = io.Copy(client, upstream); _ = client.Close() }()
	}
}

// OBS-36: a Lease without rights, which is asked for twice a second, has few lines, and none has a stack.
func TestLeaseWithoutRightsHasFewLines(t *testing.T) {
	ns := namespace(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, landscape.Seed.WriteKubeconfig(path, "without-leases"))
	p := start(t, map[string]any{
		"sourceClientConnection": map[string]any{"kubeconfig": path, "namespaces": []string{ns}},
		"controllers":            map[string]any{"cacheSyncTimeout": "3m"},
		"leaderElection":         map[string]any{"leaderElect": true, "resourceNamespace": ns, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"},
	})
	refused := regexp.MustCompile(`(?m)^rest_client_requests_total\{code="403",.*\} ([0-9]+)$`)
	eventually(t, func() error {
		_, body := p.Get(p.Metrics, "/metrics")
		total := 0
		for _, found := range refused.FindAllStringSubmatch(body, -1) {
			n, _ := strconv.Atoi(found[1])
			total += n
		}
		if total < 20 {
			return fmt.Errorf("%d requests were refused: %s", total, p.Output())
		}
		return nil
	})
	if lines := strings.Count(p.Output(), "leases.coordination.k8s.io"); lines == 0 || lines > 3 || strings.Contains(p.Output(), "stacktrace") {
		t.Errorf("OBS-36: %d lines about the Lease: %s", lines, p.Output())
	}
}
