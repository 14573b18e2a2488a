package admissioncontroller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// execute runs the command up to the point where it would start, and returns exit code, output and warnings.
func execute(t *testing.T, config string, arguments ...string) (int, string, []string) {
	t.Helper()
	if config != "" {
		file := filepath.Join(t.TempDir(), "config.yaml")
		must.Succeed(t, os.WriteFile(file, []byte(config), 0o600))
		arguments = append(arguments, "--config="+file)
	}
	var flags process.ConfigFlags
	var warnings []string
	var out strings.Builder
	code := process.Execute(process.Command{Name: "admission-controller", Flags: flags.Add, Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
		cfg, found, err := configuration(&flags)
		if err == nil {
			warnings = append(warnings, found...)
			if cfg.Server.Webhooks.Port == 1 {
				warnings = append(warnings, "port 1")
			}
		}
		return logr.Discard(), func() error { return nil }, err
	}}, arguments, &out, &out)
	return code, out.String(), warnings
}

func TestConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		config       string
		arguments    []string
		code         int
		want, warned string
	}{
		"CLI-5/no file":                  {"", nil, 1, "missing config file", ""},
		"operations 1.10/an empty one":   {"{}", nil, 0, "", ""},
		"CFG-2/another kind":             {"kind: Foo", nil, 1, `no kind "Foo" is registered`, ""},
		"ACC-2, the older key":           {"server: {https: {port: 1}}", nil, 0, "", "server.https"},
		"ACC-2/its value":                {"server: {https: {port: 1}}", nil, 0, "", "port 1"},
		"ACC-2/files of the certificate": {"server: {webhooks: {tls: {serverCertPath: x}}}", nil, 0, "", "serverCertDir"},
		"OPB-1, ACC-1/an unknown key":    {"leaderElection: {leaderElect: true}", nil, 0, "", "unknown key leaderElection"},
		"OPB-1/an unknown key, strict":   {"foo: 1", []string{"--strict-config"}, 1, "foo: Forbidden: unknown key", ""},
		"operations 1.10/a wrong value":  {"server: {resourceAdmissionConfiguration: {operationMode: foo}}", nil, 1, "server.resourceAdmissionConfiguration.mode", ""},
		"RSZ-7/limits are read":          {"server: {resourceAdmissionConfiguration: {limits: [{apiGroups: ['*'], apiVersions: ['*'], resources: [shoots], size: 1Mi}]}}", nil, 0, "", ""},
		"CLI-4/unknown flags":            {"{}", []string{"--foo"}, 1, "unknown flag: --foo", ""},
		"CLI-2/version":                  {"", []string{"--version"}, 0, "admission-controller ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, warnings := execute(t, c.config, c.arguments...)
			expect.True(t, code == c.code && strings.Contains(out, c.want) && strings.Contains(strings.Join(warnings, "\n"), c.warned),
				"exit code %d, warnings %q, output %s", code, warnings, out)
		})
	}
}
