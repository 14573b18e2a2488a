package nodeagentauthorizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/gen/auditgen"
)

// TestReplay: the verb says with its exit code whether something differs, and prints the table.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var text strings.Builder
	log := auditgen.New(&text)
	log.Add(auditgen.Agent("node-a", "list pods"))
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	logged := file("audit.log", text.String())
	nodes := file("nodes.json", `{"kind":"List","items":[{"kind":"Node","metadata":{"name":"node-a"}}]}`)
	narrow := file("narrow.yaml", "authorizeWithSelectors: true")
	manager := file("manager.yaml", "{kind: ResourceManagerConfiguration, apiVersion: resourcemanager.config.gardener.cloud/v1alpha1, webhooks: {nodeAgentAuthorizer: {enabled: true, authorizeWithSelectors: true}}}")
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"RPL-7/as the log says":       {[]string{"--audit-log", logged, "--objects", nodes}, 0, "0 of 1 decisions differ; 1 lines.\n1 objects were there"},
		"RPL-7/two configurations":    {[]string{"--audit-log", logged, "--objects", nodes, "--compare", narrow}, 1, "NA-9  node-agent  pods      list   Allow  Deny    -           machine:node-a list pods ("},
		"RPL-7/a resource-manager's":  {[]string{"--audit-log", logged, "--objects", nodes, "--config", manager}, 1, "NA-9"},
		"RPL-7/nothing is known":      {[]string{"--audit-log", logged, "--compare", narrow}, 0, "1 more cannot be compared"},
		"RPL-7/a file that is absent": {[]string{"--audit-log", logged, "--objects", filepath.Join(dir, "absent")}, 2, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			code := process.Execute(Command(), append([]string{"replay"}, c.arguments...), &out, &out)
			if code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, out.String())
			}
		})
	}
}
