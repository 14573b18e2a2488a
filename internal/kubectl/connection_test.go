package kubectl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// connected returns the connection of a command line.
func connected(t *testing.T, arguments ...string) connection {
	t.Helper()
	var c connection
	c.parse(t, arguments...)
	return c
}

func (c *connection) parse(t *testing.T, arguments ...string) {
	t.Helper()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.add(set)
	must.Succeed(t, set.Parse(arguments))
}

// TestConnection: CLI-50: the flags are those of kubectl; the target has them with a prefix.
func TestConnection(t *testing.T) {
	server := func(name string, log *[]string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			as := []string{name, r.Header.Get("Authorization"), r.Header.Get("Impersonate-User"), r.Header.Get("Impersonate-Uid"), strings.Join(r.Header["Impersonate-Group"], "+"), r.URL.Path}
			*log = append(*log, strings.Join(as, ","))
			http.Error(w, "no", http.StatusForbidden)
		}))
		t.Cleanup(s.Close)
		return s
	}
	var log []string
	source, target := server("source", &log), server("target", &log)
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"CLI-50/the kubeconfig":          {[]string{"-n", "ns/a"}, "source,,,,,/a source,,,,,/a"},
		"CLI-50/the server of the flags": {[]string{"--server", target.URL, "-n", "a"}, "target,,,,,/a target,,,,,/a"},
		"CLI-50/who asks both":           {[]string{"-n", "a", "--as", "u", "--as-uid", "1", "--as-group", "g", "--as-group", "h", "--target-server", target.URL}, "source,,u,1,g+h,/a target,,u,1,g+h,/a"},
		"CLI-50/who asks the target":     {[]string{"-n", "a", "--as", "u", "--as-group", "g", "--target-as", "v", "--target-server", target.URL}, "source,,u,,g,/a target,,v,,,/a"},
		"CLI-50/no namespace":            {nil, "source,,,,,/default source,,,,,/default"},
	} {
		t.Run(name, func(t *testing.T) {
			log = nil
			c := connected(t, append(tc.arguments, "--kubeconfig", kubeconfig.File(t, source.URL))...)
			found, err := c.open(t.Context())
			must.Succeed(t, err)
			for _, r := range []struct {
				*reader
				namespace string
			}{{found.source, found.namespace}, {found.target, found.targetNamespace}} {
				_, _ = r.dynamic.Resource(secretResource).Namespace(r.namespace).List(t.Context(), metav1.ListOptions{})
			}
			got := strings.ReplaceAll(strings.ReplaceAll(strings.Join(log, " "), "/api/v1/namespaces", ""), "/secrets", "")
			expect.Equal(t, got, tc.want)
		})
	}
	for arguments, want := range map[string]string{
		"--context=other":           `source: context "other" does not exist`,
		"--target-context=other":    `target: context "other" does not exist`,
		"--cluster=other":           `source: cluster "other" does not exist`,
		"--target-user=other":       `target: auth info "other" does not exist`,
		"--request-timeout=soon":    "source: Invalid timeout value.",
		"--certificate-authority=x": "source: ",
	} {
		c := connected(t, arguments, "--kubeconfig", kubeconfig.File(t, source.URL))
		_, err := c.open(t.Context())
		expect.True(t, err != nil && strings.HasPrefix(err.Error(), want), "CLI-50: %s: %v", arguments, err)
	}
}

// TestTokenStaysWithItsCluster: CLI-50: the token of the source is not sent to the target.
func TestTokenStaysWithItsCluster(t *testing.T) {
	c := connected(t, "--token=t", "--target-server=https://target", "--request-timeout=3s", "--server=https://source", "--kubeconfig", kubeconfig.File(t, "https://x"))
	to, other := c.toTarget()
	config, _, err := to.load()
	expect.True(t, err == nil && other && config.BearerToken == "" && config.Host == "https://target" && config.Timeout.String() == "3s",
		"%v: %v", err, config)
	if config, _, err := c.source.load(); err != nil || config.BearerToken != "t" || config.Host != "https://source" {
		t.Errorf("%v: %v", err, config)
	}
}
