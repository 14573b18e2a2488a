package process

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// Origins are proven by managed fields, whose manager is the name of the client, so that each client needs that name: also those over an
// HTTP client that was made from the configuration before.
func TestClientsHaveAName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1'}}]\nusers: [{name: u, user: {token: t}}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := RESTConfig(&shared.ClientConnection{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	if want := rest.DefaultKubernetesUserAgent(); config.UserAgent != want {
		t.Errorf("user agent %q, want %q", config.UserAgent, want)
	}
}

const oneCluster = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://named.example.org"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {token: t}}]
`

// TestRESTConfig: the file that is named counts, and no other.
func TestRESTConfig(t *testing.T) {
	home := t.TempDir()
	named, elsewhere := filepath.Join(home, "named"), filepath.Join(home, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(elsewhere), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{named, elsewhere} {
		if err := os.WriteFile(file, []byte(oneCluster), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", elsewhere)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if config, err := RESTConfig(&shared.ClientConnection{}); err == nil ||
		err.Error() != "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable" {
		t.Errorf("CCH-1: without a path: %v, %v", config, err)
	}
	config, err := RESTConfig(&shared.ClientConnection{Kubeconfig: named, QPS: 7, Burst: 9, AcceptContentTypes: "a/b", ContentType: "c/d"})
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://named.example.org" {
		t.Errorf("CCH-1: the host is %s", config.Host)
	}
	if config.QPS != 7 || config.Burst != 9 || config.AcceptContentTypes != "a/b" || config.ContentType != "c/d" {
		t.Errorf("CCH-3: got %v, %v, %q, %q", config.QPS, config.Burst, config.AcceptContentTypes, config.ContentType)
	}
}
