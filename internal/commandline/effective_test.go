package commandline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	admissioncontrollerconfig "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizerconfig "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanagerconfig "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestEffective: CLI-65: defaults are printed, and the output means the same.
func TestEffective(t *testing.T) {
	for name, tc := range map[string]struct {
		command func() process.Command
		content string
		want    []string
	}{
		"CLI-65/resource-manager": {
			resourcemanager.Command,
			"apiVersion: " + resourcemanagerconfig.APIVersion + "\nkind: " + resourcemanagerconfig.Kind + "\nleaderElection: {leaderElect: false}\n",
			[]string{"\n  managedResource:\n", "\n    syncPeriod: 1m0s\n", "\nlogLevel: info\n"},
		},
		"CLI-65/admission-controller": {
			admissioncontroller.Command,
			"apiVersion: " + admissioncontrollerconfig.APIVersion + "\nkind: " + admissioncontrollerconfig.Kind + "\nserver: {}\n", []string{"\nlogLevel: info\n"},
		},
		"CLI-65/node-agent-authorizer": {
			nodeagentauthorizer.Command,
			"apiVersion: " + nodeagentauthorizerconfig.APIVersion + "\nkind: " + nodeagentauthorizerconfig.Kind + "\nauthorizeWithSelectors: false\n", []string{"\nmaxStaleness: 10m0s\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			effective := func(content string) (keys map[string]any, printed string) {
				file := filepath.Join(t.TempDir(), "config.yaml")
				must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
				var out, errs strings.Builder
				code := process.Execute(tc.command(), []string{"validate-config", "--effective", file}, &out, &errs)
				must.Equal(t, code, 0, "exit code %d: %s%s", code, out.String(), errs.String())
				must.Succeed(t, yaml.Unmarshal([]byte(out.String()), &keys))
				return keys, out.String()
			}
			meaning, printed := effective(tc.content)
			again, _ := effective(printed)
			expect.DeepEqual(t, again, meaning, "CLI-65: it means something else")
			for _, want := range tc.want {
				expect.Contains(t, printed, want, "CLI-65: %s is not printed", want)
			}
		})
	}
}
