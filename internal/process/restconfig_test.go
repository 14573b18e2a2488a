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
