package commandline

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	admissioncontrollerconfig "github.com/espalier-project/espalier/api/config/admissioncontroller/v1alpha1"
	nodeagentauthorizerconfig "github.com/espalier-project/espalier/api/config/nodeagentauthorizer/v1alpha1"
	resourcemanagerconfig "github.com/espalier-project/espalier/api/config/resourcemanager/v1alpha1"
	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/must"
)

// TestEffective: CLI-65: every key is printed, and the output means the same.
func TestEffective(t *testing.T) {
	for name, tc := range map[string]struct {
		command func() process.Command
		cfg     any
		content string
		want    []string
	}{
		"CLI-65/resource-manager": {
			resourcemanager.Command, resourcemanagerconfig.ResourceManagerConfiguration{},
			"apiVersion: " + resourcemanagerconfig.APIVersion + "\nkind: " + resourcemanagerconfig.Kind + "\nleaderElection: {leaderElect: false}\n",
			[]string{"allowHolds: null # not set. Default: true if the target is the source", "syncPeriod: null # not set. Default 1h when enabled.", "debugging: null # not set."},
		},
		"CLI-65/admission-controller": {
			admissioncontroller.Command, admissioncontrollerconfig.AdmissionControllerConfiguration{},
			"apiVersion: " + admissioncontrollerconfig.APIVersion + "\nkind: " + admissioncontrollerconfig.Kind + "\nserver: {}\n", nil,
		},
		"CLI-65/node-agent-authorizer": {
			nodeagentauthorizer.Command, nodeagentauthorizerconfig.NodeAgentAuthorizerConfiguration{},
			"apiVersion: " + nodeagentauthorizerconfig.APIVersion + "\nkind: " + nodeagentauthorizerconfig.Kind + "\nauthorizeWithSelectors: false\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			effective := func(content string) (keys map[string]any, printed string) {
				file := filepath.Join(t.TempDir(), "config.yaml")
				must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
				var out, errs strings.Builder
				if code := process.Execute(tc.command(), []string{"validate-config", "--effective", file}, &out, &errs); code != 0 {
					t.Fatalf("exit code %d: %s%s", code, out.String(), errs.String())
				}
				must.Succeed(t, yaml.Unmarshal([]byte(out.String()), &keys))
				return keys, out.String()
			}
			meaning, printed := effective(tc.content)
			again, _ := effective(printed)
			if diff := cmp.Diff(meaning, again); diff != "" {
				t.Errorf("CLI-65: it means something else: %s", diff)
			}
			keys(t, reflect.TypeOf(tc.cfg), printed)
			for _, want := range tc.want {
				if !strings.Contains(printed, want) {
					t.Errorf("CLI-65: %s is not printed:\n%s", want, printed)
				}
			}
		})
	}
}

// keys holds that the keys of a type, and of the sections in it that are always there, are printed.
func keys(t *testing.T, of reflect.Type, printed string) {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	for i := range of.NumField() {
		field := of.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key != "" && !strings.Contains(printed, key+":") {
			t.Errorf("CLI-65: %s of %s is not printed", key, of)
		}
		if field.Type.Kind() == reflect.Struct && strings.Contains(field.Type.PkgPath(), "/api/config/") {
			keys(t, field.Type, printed)
		}
	}
}
