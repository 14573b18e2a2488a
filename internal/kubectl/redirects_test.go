package kubectl

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-project/espalier/test/must"
)

// TestConnection_Redirects: neither a read nor a patch nor the request for a kubeconfig follows a redirect to another host (CCH-62).
func TestConnection_Redirects(t *testing.T) {
	visits := 0
	inner := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits++ }))
	t.Cleanup(inner.Close)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/inner", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(api.Close)
	arguments := []string{"--server", api.URL, "--insecure-skip-tls-verify", "-n", "a"}
	c := connected(t, arguments...)
	found, err := c.open(t.Context())
	must.Succeed(t, err)
	config, _, err := c.source.load()
	must.Succeed(t, err)
	patcher, err := newPatcher(config)
	must.Succeed(t, err)
	shoot := connected(t, append(arguments, "--shoot", "local/a")...)
	for name, send := range map[string]func() error{
		"CCH-62/reads": func() error {
			_, err := found.source.dynamic.Resource(secretResource).Namespace("a").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"CCH-62/reads of metadata": func() error {
			_, err := found.source.metadata.Resource(secretResource).Namespace("a").List(t.Context(), metav1.ListOptions{})
			return err
		},
		"CCH-62/reads of the version": func() error {
			_, err := found.source.discovery.ServerVersionWithContext(t.Context())
			return err
		},
		"CCH-62/patches": func() error {
			_, err := patcher.Resource(secretResource).Namespace("a").Patch(t.Context(), "x", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			return err
		},
		"CCH-62/the garden": func() error { _, err := shoot.open(t.Context()); return err },
	} {
		if err := send(); err == nil || !strings.Contains(err.Error(), "redirects") || !strings.Contains(err.Error(), inner.URL) || visits > 0 {
			t.Errorf("%s: got %v, %d visits", name, err, visits)
		}
	}
}
