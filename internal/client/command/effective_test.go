package command

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/commandline/admissioncontroller"
	"github.com/espalier-project/espalier/internal/commandline/nodeagentauthorizer"
	"github.com/espalier-project/espalier/internal/commandline/resourcemanager"
	"github.com/espalier-project/espalier/internal/process"
)

// TestEffective: CLI-65: every key is printed, and the output means the same.
func TestEffective(t *testing.T) {
	const election = "leaderElection: {leaderElect: false}\n"
	for name, tc := range map[string]struct {
		kind    process.ConfigKind
		content string
		want    []string
	}{
		"CLI-65/resource-manager": {resourcemanager.ConfigKind, election, []string{
			"allowHolds: null # not set. Default: true if the target is the source",
			"syncPeriod: null # not set. Default 1h when enabled.",
			"debugging: null # not set.",
		}},
		"CLI-65/admission-controller":  {admissioncontroller.ConfigKind, "server: {}\n", nil},
		"CLI-65/node-agent-authorizer": {nodeagentauthorizer.ConfigKind, "authorizeWithSelectors: false\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			format := tc.kind.Format
			content := "apiVersion: " + format.APIVersion + "\nkind: " + format.Kind + "\n" + tc.content
			effective := func(content string) (any, string) {
				file := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				cfg, _, err := tc.kind.Read(&process.ConfigFlags{File: file})
				if err != nil {
					t.Fatal(err)
				}
				verb, set, out := process.ValidateConfig(tc.kind), pflag.NewFlagSet("", pflag.ContinueOnError), &strings.Builder{}
				verb.Flags(set)
				if err := errors.Join(set.Parse([]string{"--effective", file}), verb.Run(set, out)); err != nil {
					t.Fatal(err)
				}
				return cfg, out.String()
			}
			cfg, printed := effective(content)
			again, _ := effective(printed)
			if diff := cmp.Diff(cfg, again); diff != "" {
				t.Errorf("CLI-65: it means something else: %s", diff)
			}
			keys(t, reflect.TypeOf(cfg), printed)
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
