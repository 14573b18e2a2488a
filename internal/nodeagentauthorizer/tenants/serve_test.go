package tenants

import (
	"testing"

	"github.com/espalier-project/espalier/test/expect"
)

// TestPaths: the last part of a path names the shoot, and nothing else of it matters.
func TestPaths(t *testing.T) {
	f := newFolder(t)
	f.write("web.yaml", entry("kubeconfig"))
	f.looks()
	for path, want := range map[string]string{
		"/webhooks/auth/nodeagent/web":     "200 web of kubeconfig",
		"/webhooks/auth/nodeagent/web/":    "200 web of kubeconfig",
		"/webhooks/auth/nodeagent/api/web": "200 web of kubeconfig",
		"/webhooks/auth/nodeagent/web/api": "404 no api",
		"/webhooks/auth/nodeagent/WEB":     "404 no WEB",
		"/webhooks/auth/nodeagent/":        "404 no nodeagent",
	} {
		expect.Equal(t, f.ask(path), want, "%s answers", path)
	}
}
