package nodeagentauthorizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	config "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func parse(t *testing.T, text string, strict bool) (*config.NodeAgentAuthorizerConfiguration, []string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
	return configuration(&process.ConfigFlags{File: file, Strict: strict})
}

func TestConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		strict bool
		failed string
		warned string
		check  func(*config.NodeAgentAuthorizerConfiguration) bool
	}{
		"NAA-2/an empty one, NAA-3, NAA-4": {text: "{}", check: func(c *config.NodeAgentAuthorizerConfiguration) bool {
			return c.MachineNamespace == nil && c.AuthorizeWithSelectors == "false" && c.Server.Webhooks.Port == 9449 && c.Server.HealthProbes.Port == 8081 && c.Server.Metrics.Port == 8080 &&
				c.TargetClientConnection.QPS == 100 && c.TargetClientConnection.Burst == 130 && c.MaxStaleness.Duration == 10*time.Minute
		}},
		"NAA-2/its own kind": {
			text: "{apiVersion: nodeagentauthorizer.config.gardener.cloud/v1alpha1, kind: NodeAgentAuthorizerConfiguration, machineNamespace: m, authorizeWithSelectors: true, nodes: {allowWatchAll: true}, logLevel: debug}",
			check: func(c *config.NodeAgentAuthorizerConfiguration) bool {
				return *c.MachineNamespace == "m" && c.AuthorizeWithSelectors == "true" && c.Nodes.AllowWatchAll && c.LogLevel == "debug"
			}},
		"NAA-5/Auto":           {text: "authorizeWithSelectors: Auto", check: func(c *config.NodeAgentAuthorizerConfiguration) bool { return c.AuthorizeWithSelectors == "Auto" }},
		"NAA-5/something else": {text: "authorizeWithSelectors: Sometimes", failed: "want true, false or Auto"},
		"NAA-2/a resource-manager's, without election": {
			text: "{apiVersion: resourcemanager.config.gardener.cloud/v1alpha1, kind: ResourceManagerConfiguration, sourceClientConnection: {kubeconfig: s, qps: 7}, targetClientConnection: {kubeconfig: t}, " +
				"server: {webhooks: {port: 1}}, webhooks: {nodeAgentAuthorizer: {enabled: false, machineNamespace: m, authorizeWithSelectors: true, nodes: {allowWatchAll: true}, maxStaleness: 3m}}, controllers: {managedResource: {concurrentSyncs: 3}}}",
			check: func(c *config.NodeAgentAuthorizerConfiguration) bool {
				return c.SourceClientConnection.Kubeconfig == "s" && c.SourceClientConnection.QPS == 7 && c.TargetClientConnection.Kubeconfig == "t" && c.Server.Webhooks.Port == 1 &&
					*c.MachineNamespace == "m" && c.AuthorizeWithSelectors == "true" && c.Nodes.AllowWatchAll && c.MaxStaleness.Duration == 3*time.Minute
			}},
		"staleness/never": {text: "maxStaleness: 0s", check: func(c *config.NodeAgentAuthorizerConfiguration) bool { return c.MaxStaleness.Duration == 0 }},
		"NAA-12/limits": {text: "shootLimits: {pages: 3}", check: func(c *config.NodeAgentAuthorizerConfiguration) bool {
			return c.ShootLimits.Pages == 3 && c.ShootLimits.ListTimeout.Duration == 5*time.Minute
		}},
		"NAA-12/no pages": {text: "shootLimits: {pages: -1}", failed: "shootLimits.pages: Invalid value"},
		"NAA-12/no time":  {text: "shootLimits: {listTimeout: 0s}", failed: "shootLimits.listTimeout: Invalid value"},
		"staleness/wrong": {text: "maxStaleness: -1s", failed: "maxStaleness: Invalid value"},
		"NAA-2/a resource-manager's with nothing in it": {text: "kind: ResourceManagerConfiguration", check: func(c *config.NodeAgentAuthorizerConfiguration) bool { return c.AuthorizeWithSelectors == "false" }},
		"NAA-4/an empty namespace":                      {text: "machineNamespace: ''", failed: "machineNamespace: Required value: machine namespace must be nil or not empty"},
		"OPB-1/an unknown key":                          {text: "foo: 1", warned: "unknown key foo"},
		"OPB-1/an unknown key, strict":                  {text: "foo: 1", strict: true, failed: "foo: Forbidden: unknown key"},
		"CFG-2/another kind":                            {text: "kind: Foo", failed: `no kind "Foo" is registered`},
		"a folder and a namespace":                      {text: "{shootsDirectory: d, machineNamespace: m}", failed: "machineNamespace: Forbidden"},
		"no YAML":                                       {text: "{", failed: "error decoding config"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, warnings, err := parse(t, c.text, c.strict)
			switch {
			case c.failed != "":
				expect.ErrorContains(t, err, c.failed)
			case err != nil:
				t.Error(err)
			case c.check != nil && !c.check(cfg):
				t.Errorf("got %+v", cfg)
			case !strings.Contains(strings.Join(warnings, " "), c.warned):
				t.Errorf("got the warnings %q", warnings)
			}
		})
	}
	if _, _, err := configuration(&process.ConfigFlags{}); err == nil || err.Error() != "missing config file" {
		t.Errorf("CLI-5: got %v", err)
	}
}
