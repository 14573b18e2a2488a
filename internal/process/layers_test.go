package process

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

var profiledFormat = FileFormat{
	APIVersion: "things/v1", Kind: "Thing", Aliases: thingFormat.Aliases,
	Profiles: map[string]string{"contract": "", "gardener": "limit: 4\nwait: {port: 7, bindAddress: profile}\n"},
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// CFG-16, R1, R2, R8 by profile: built-in defaults lie below the profile, the profile below the defaults file, and that below the configuration.
func TestLayers(t *testing.T) {
	for name, c := range map[string]struct {
		config, defaults, profile string
		want                      thing
		err                       string
	}{
		"built-in only":                            {config: "name: a", want: thing{Name: "a"}},
		"a profile by flag":                        {config: "name: a", profile: "gardener", want: thing{Name: "a", Limit: 4, Wait: &shared.Server{Port: 7, BindAddress: "profile"}}},
		"a profile by the defaults file":           {config: "name: a", defaults: "profile: gardener", want: thing{Name: "a", Limit: 4, Wait: &shared.Server{Port: 7, BindAddress: "profile"}}},
		"the flag overrides the file's profile":    {config: "name: a", defaults: "profile: gardener\nname: b", profile: "contract", want: thing{Name: "a"}},
		"the configuration overrides":              {config: "limit: 2\nwait: {port: 1}", profile: "gardener", want: thing{Limit: 2, Wait: &shared.Server{Port: 1, BindAddress: "profile"}}},
		"CFG-16/maps merge, lists replace":         {config: "parts: [{lit: true}]\ntags: {b: {lit: true}}", defaults: "parts: [{}, {}]\ntags: {a: {lit: true}}", want: thing{Parts: []part{{true}}, Tags: map[string]part{"a": {true}, "b": {true}}}},
		"false and 0 override":                     {config: "limit: 0\nlit: false", defaults: "limit: 3\nlit: true", want: thing{}},
		"an empty value is none":                   {config: "limit:", defaults: "limit: 3", want: thing{Limit: 3}},
		"older keys in each layer":                 {config: "waits: {bindAddress: c}", defaults: "waits: {port: 5}", want: thing{Wait: &shared.Server{Port: 5, BindAddress: "c"}}},
		"defaults may name their kind":             {config: "name: a", defaults: "apiVersion: things/v1\nkind: Thing\nlimit: 1", want: thing{Name: "a", Limit: 1}},
		"defaults of another kind":                 {config: "name: a", defaults: "kind: Other", err: "error reading defaults file F: no kind \"Other\" is registered"},
		"a profile that there is not":              {config: "name: a", profile: "other", err: `profile: Unsupported value: "other": supported values: "contract", "gardener"`},
		"a profile that is no text":                {config: "name: a", defaults: "profile: [a]", err: "profile: Invalid value"},
		"defaults with a wrong value are no guess": {config: "name: a", defaults: "limit: x", err: "limit: Invalid value: \"x\": must be an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			flags := ConfigFlags{File: write(t, c.config), Profile: c.profile}
			if c.defaults != "" {
				flags.Defaults = write(t, c.defaults)
			}
			var got thing
			_, err := flags.Read(profiledFormat, &got)
			if c.err != "" {
				if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "file "+flags.Defaults, "file F"), c.err) {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			must.Succeed(t, err)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(thing{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	flags := ConfigFlags{File: write(t, "name: a"), Defaults: "/none"}
	expect.ErrorContains(t, expect.ErrorOf(flags.Read(profiledFormat, &thing{})), "/none: open /none: no such file",
		"a defaults file that is named has to be there")
}

// TestReadOnce: a configuration that comes through a pipe is read once, by validate-config too, which would pass any file otherwise.
func TestReadOnce(t *testing.T) {
	reader, writer, err := os.Pipe()
	must.Succeed(t, err)
	stdin := os.Stdin
	os.Stdin = reader
	t.Cleanup(func() { os.Stdin = stdin })
	must.Succeed(t, expect.ErrorOf(io.WriteString(writer, "naem: a\n")))
	must.Succeed(t, writer.Close())
	command := executable(nil, nil, io.Discard)
	command.Subcommands = []Subcommand{ValidateConfig(func(file *ConfigFlags) (any, []string, error) {
		cfg := &thing{}
		warnings, err := file.Read(thingFormat, cfg)
		return cfg, warnings, err
	})}
	code, _, errOut := run(t, command, "validate-config", "-")
	expect.True(t, code == 1 && errOut == "-: naem: Forbidden: unknown key\n", "exit code %d: %s", code, errOut)
}
