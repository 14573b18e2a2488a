package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// Origins are proven by managed fields, whose manager is the name of the client, so that each client needs that name: also those over an
// HTTP client that was made from the configuration before.
func TestClientsHaveAName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1'}}]\nusers: [{name: u, user: {token: t}}]\n"
	must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
	config, err := RESTConfig(&shared.ClientConnection{Kubeconfig: file})
	must.Succeed(t, err)
	expect.Equal(t, config.UserAgent, rest.DefaultKubernetesUserAgent(), "user agent")
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
	must.Succeed(t, os.MkdirAll(filepath.Dir(elsewhere), 0o755))
	for _, file := range []string{named, elsewhere} {
		must.Succeed(t, os.WriteFile(file, []byte(oneCluster), 0o600))
	}
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", elsewhere)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if config, err := RESTConfig(&shared.ClientConnection{}); err == nil ||
		err.Error() != "invalid configuration: no configuration has been provided, set kubeconfig of the client connection, or KUBECONFIG, or TARGET_KUBECONFIG for a target" {
		t.Errorf("CCH-1: without a path: %v, %v", config, err)
	}
	config, err := RESTConfig(&shared.ClientConnection{Kubeconfig: named, QPS: 7, Burst: 9, AcceptContentTypes: "a/b", ContentType: "c/d"})
	must.Succeed(t, err)
	expect.Equal(t, config.Host, "https://named.example.org", "CCH-1: the host")
	expect.True(t, config.QPS == 7 && config.Burst == 9 && config.AcceptContentTypes == "a/b" && config.ContentType == "c/d",
		"CCH-3: got %v, %v, %q, %q", config.QPS, config.Burst, config.AcceptContentTypes, config.ContentType)
}

// TestKubeconfig: a kubeconfig that somebody else has written names no file, program or proxy.
func TestKubeconfig(t *testing.T) {
	if config, err := Kubeconfig([]byte(oneCluster)); err != nil || config.Host != "https://named.example.org" || config.BearerToken != "t" {
		t.Errorf("CCH-2: got %v, %v", config, err)
	}
	for name, c := range map[string]struct{ before, after, fails string }{
		"CCH-2/a token file":       {"token: t", "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", `token files are not supported in the kubeconfig of a shoot (user "u")`},
		"CCH-2/a file of CAs":      {`server: "`, `certificate-authority: /ca, server: "`, `files of certificate authorities are not supported in the kubeconfig of a shoot (cluster "c")`},
		"CCH-2/a proxy":            {`server: "`, `proxy-url: "http://a", server: "`, `proxies are not supported in the kubeconfig of a shoot (cluster "c")`},
		"CCH-2/a program":          {"token: t", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}", "exec configurations are not supported"},
		"CCH-2/a certificate file": {"token: t", "client-certificate: /a", "client certificate files are not supported"},
		"CCH-2/no kubeconfig":      {"apiVersion: v1", "secret: content: [", "it is no kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Kubeconfig([]byte(strings.Replace(oneCluster, c.before, c.after, 1)))
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "secret: content") {
				t.Errorf("got %v, want %s", err, c.fails)
			}
		})
	}
}

// TestKubeconfigsAreBounded: a kubeconfig whose aliases expand is refused at the cost of its size, in a Secret and in a file.
func TestKubeconfigsAreBounded(t *testing.T) {
	sizes := []int{20 << 10, 80 << 10, 1 << 20}
	yamltest.RefusesCheaply(t, "LIM-1/CCH-2", sizes, func(content []byte) error {
		_, err := Kubeconfig(content)
		return err
	})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	yamltest.RefusesCheaply(t, "LIM-1/CCH-1", sizes, func(content []byte) error {
		must.Succeed(t, os.WriteFile(file, content, 0o600))
		_, err := RESTConfig(&shared.ClientConnection{Kubeconfig: file})
		return err
	})
}

// A kubeconfig of one of many clusters names no file, whoever wrote it: its server would get what is in the file (CCH-2).
func TestTenantConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for name, c := range map[string]struct{ before, after, want string }{
		"CCH-2/embedded":   {"", "", ""},
		"CCH-2/token file": {"token: t", "tokenFile: /var/run/secrets/token", "token files are not supported"},
	} {
		must.Succeed(t, os.WriteFile(path, []byte(strings.Replace(oneCluster, c.before, c.after, 1)), 0o600))
		config, err := TenantConfig(&shared.ClientConnection{Kubeconfig: path, QPS: 7})
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && (err != nil || config.QPS != 7) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	expect.Error(t, expect.ErrorOf(TenantConfig(&shared.ClientConnection{})),
		"CCH-2: the process's own cluster is no tenant's")
}
