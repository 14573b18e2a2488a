package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func run(t *testing.T, c Command, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Execute(c, arguments, &out, &errOut)
	return code, out.String(), errOut.String()
}

func executable(prepare error, started error, log io.Writer) Command {
	return Command{
		Name: "thing", Short: "Do a thing", Long: "It runs here.\n\nAnd there.", Smallest: "kind: Thing\n", Documents: []string{"docs/thing.md"},
		Environment: []Term{{"THING", "what it is about"}},
		Flags: func(set *pflag.FlagSet) {
			set.String("config", "", "the `file`")
			set.Int("old", 5, "")
			Deprecate(set.Lookup("old"), "things.new")
		},
		Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) {
			if prepare != nil {
				return logr.Discard(), nil, prepare
			}
			return NewLogger("info", "json", log), func() error { return started }, nil
		},
		Subcommands: []Subcommand{{Name: "show", Short: "Show it", Run: func(_ *pflag.FlagSet, out io.Writer) error {
			_, err := io.WriteString(out, "shown\n")
			return err
		}}},
	}
}

// CLI-6: what is wrong is said once, on stderr, a line for each fault; a second line leads to the help if the command line is wrong (CLI-56).
func TestErrorsAreToldOnce(t *testing.T) {
	path := field.NewPath("a")
	faults := field.ErrorList{field.Required(path.Child("b"), ""), field.Invalid(path.Child("c"), 1, "too small")}.ToAggregate()
	for name, tc := range map[string]struct {
		prepare   error
		arguments []string
		want      string
	}{
		"CLI-5/one fault":           {prepare: errors.New("missing config file"), want: "Error: missing config file\n"},
		"CFG-4/several faults":      {prepare: faults, want: "Error: a.b: Required value\nError: a.c: Invalid value: 1: too small\n"},
		"CLI-5/several, wrapped":    {prepare: fmt.Errorf("error decoding config: %w", faults), want: "Error: error decoding config: a.b: Required value\nError: error decoding config: a.c: Invalid value: 1: too small\n"},
		"CLI-4/unknown flag":        {arguments: []string{"--foo"}, want: "Error: unknown flag: --foo\nSee 'thing --help'\n"},
		"CLI-56/misspelt flag":      {arguments: []string{"--confg=x"}, want: "Error: unknown flag: --confg\nSee 'thing --help'\n"},
		"CLI-56/unknown shorthand":  {arguments: []string{"-x"}, want: "Error: unknown shorthand flag: 'x' in -x\nSee 'thing --help'\n"},
		"CLI-4/argument":            {arguments: []string{"x"}, want: "Error: unknown command \"x\" for \"thing\"\nSee 'thing --help'\n"},
		"CLI-4/misspelt verb":       {arguments: []string{"shwo"}, want: "Error: unknown command \"shwo\" for \"thing\", did you mean show?\nSee 'thing --help'\n"},
		"CLI-4/verbs that begin so": {arguments: []string{"s"}, want: "Error: unknown command \"s\" for \"thing\", did you mean show?\nSee 'thing --help'\n"},
		"CLI-4/verb with one":       {arguments: []string{"show", "x"}, want: "Error: unknown command \"x\" for \"thing show\"\nSee 'thing show --help'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := run(t, executable(tc.prepare, nil, io.Discard), tc.arguments...)
			expect.True(t, code == 1 && out == "" && errOut == tc.want,
				"exit code %d, stdout %q, stderr:\n%s", code, out, errOut)
		})
	}

	var log bytes.Buffer
	code, out, errOut := run(t, executable(nil, errors.New("lost"), &log))
	expect.True(t, code == 1 && out == "" && errOut == "" && strings.Count(log.String(), "lost") == 1,
		"OPB-8: exit code %d, stdout %q, stderr %q, log %s", code, out, errOut, log.String())
	if code, out, errOut = run(t, executable(nil, nil, io.Discard), "show"); code != 0 || out != "shown\n" || errOut != "" {
		t.Errorf("a verb: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
}

// CLI-1: the help says what runs where, how little is needed, and where more is said; deprecated flags have a heading of their own.
func TestHelp(t *testing.T) {
	code, out, errOut := run(t, executable(nil, nil, io.Discard), "--help")
	const want = `Do a thing

It runs here.

And there.

Usage:
  thing --config FILE [flags]

Commands:
  completion  Generate the autocompletion script for the specified shell
  man         Write the man pages into a folder
  show        Show it
  version     Print the version

Flags:
  --config file  the file
  -h, --help     help for thing
  --version      print the version and exit, with raw all of it; a value that starts with v overrides it

Deprecated flags:
  --old int  use things.new

Environment:
  THING                                             what it is about
`
	expect.True(t, code == 0 && errOut == "", "exit code %d, stderr %q", code, errOut)
	head, _, _ := strings.Cut(out, "  THING")
	expect.DeepEqual(t, head, strings.Split(want, "  THING")[0])
	for _, part := range []string{"THING ", "KUBERNETES_SERVICE_HOST", "Exit codes:\n  0  ", "Smallest configuration:\n  kind: Thing\n", "Documents:\n  docs/thing.md\n"} {
		expect.Contains(t, out, part, "%q is missing", part)
	}
	if _, out, _ = run(t, executable(nil, nil, io.Discard), "show", "--help"); !strings.HasPrefix(out, "Show it\n\nUsage:\n  thing show [flags]\n") {
		t.Errorf("of a verb: %s", out)
	}
}

func TestManPagesAndReference(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	code, _, errOut := run(t, executable(nil, nil, io.Discard), "man", "--dir="+dir)
	must.Equal(t, code, 0, "%s", errOut)
	for file, parts := range map[string][]string{
		"thing.1":            {".TH THING 1 ", ".SH NAME\nthing \\- Do a thing\n", "It runs here.\n.PP\nAnd there.\n", ".SH FLAGS\n.TP\n.B \\-\\-config file\nthe file\n", ".SH DEPRECATED FLAGS\n.TP\n.B \\-\\-old int\nuse things.new\n"},
		"thing-show.1":       {".SH NAME\nthing\\-show \\- Show it\n"},
		"thing-man.1":        {".TH THING\\-MAN 1"},
		"thing-completion.1": {"bash"},
	} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		must.Succeed(t, err)
		for _, part := range parts {
			expect.Contains(t, string(content), part, "%s: %q is missing", file, part)
		}
	}
	expect.Equal(t, roff("-a\n.b\\c\n'd"), "\\-a\n\\&.b\\ec\n\\&'d")
}

// Every shell gets its script, and the script's questions are answered.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, errOut := run(t, executable(nil, nil, io.Discard), "completion", shell); code != 0 || !strings.Contains(out, "thing") {
			t.Errorf("%s: exit code %d: %s", shell, code, errOut)
		}
	}
	code, out, _ := run(t, executable(nil, nil, io.Discard), "__complete", "--")
	expect.True(t, code == 0 && strings.Contains(out, "--config") && !strings.Contains(out, "--old"),
		"exit code %d: %s", code, out)
}

type thing struct {
	Name  string           `json:"name"`
	Limit int32            `json:"limit"`
	Parts []part           `json:"parts"`
	Wait  *shared.Server   `json:"wait"`
	Tags  map[string]part  `json:"tags"`
	Quick *map[string]bool `json:"quick"`
	part  `json:",inline"`
}

type part struct {
	Lit bool `json:"lit"`
}

var thingFormat = FileFormat{
	APIVersion: "things/v1", Kind: "Thing",
	Aliases: []shared.Alias{{Old: "waits", New: "wait"}, {Old: "gone", Dropped: "nobody wants it"}},
}

// TestValidateConfig: each fault is reported with its key, also if the file has an older name of it.
func TestValidateConfig(t *testing.T) {
	command := executable(nil, nil, io.Discard)
	command.Subcommands = []Subcommand{ValidateConfig(func(file *ConfigFlags) (any, []string, error) {
		cfg := &thing{}
		warnings, err := file.Read(thingFormat, cfg)
		var errs field.ErrorList
		if cfg.Limit > 5 {
			errs = append(errs, field.Invalid(field.NewPath("limit"), cfg.Limit, "too much"))
		}
		if cfg.Wait != nil && cfg.Wait.Port == 0 {
			errs = append(errs, field.Required(field.NewPath("wait", "port"), ""))
		}
		if cfg.Name == "-" {
			errs = append(errs, field.Invalid(field.NewPath("label"), cfg.Name, "no name"))
		}
		cfg.Limit++
		return cfg, warnings, Faults(err, errs)
	})}
	for name, tc := range map[string]struct {
		file   string
		flags  []string
		code   int
		stdout string
		stderr string
	}{
		"nothing":            {file: "# a comment\n", code: 1, stderr: "F: the file holds no configuration\n"},
		"an empty object":    {file: "{}\n"},
		"a second document":  {file: "name: a\n---\nname: b\n", code: 1, stderr: "F: error decoding config: the file has more than one document, and only one can count\n"},
		"a typing error":     {file: "naem: a\n", code: 1, stderr: "F: naem: Forbidden: unknown key\n"},
		"types and values":   {file: "name: 5\nlimit: 6\n", code: 1, stderr: "F: name: Invalid value: 5: must be a string\nF: limit: Invalid value: 6: too much\n"},
		"nothing wrong":      {file: "name: a\nparts: [{lit: true}]\ntags: {a: {lit: false}}\nlit: true\n"},
		"OPB-1/unknown keys": {file: "name: a\nfoo: 1\nparts:\n- lit: true\n- dark: 1\n", code: 1, stderr: "F: foo: Forbidden: unknown key\nF: parts[1].dark: Forbidden: unknown key\n"},
		"OPB-1/as a warning": {file: "foo: 1\n", flags: []string{"--strict-config=false"}, stdout: "F: warning: unknown key foo is ignored\n"},
		"CFG-6/types": {
			file: "# a comment\nname: 5\nlimit:\n  a: b\nparts: {}\ntags:\n  x.y:\n    lit: maybe\nfoo: 1\n", code: 1,
			stderr: "F: limit: Invalid value: must be an integer of at most 32 bits\nF: name: Invalid value: 5: must be a string\nF: parts: Invalid value: must be a list\n" +
				"F: tags.x.y.lit: Invalid value: \"maybe\": must be true or false\nF: foo: Forbidden: unknown key\n",
		},
		"CFG-7/values, and an older name": {file: "limit: 6\nwaits:\n  bindAddress: a\n", code: 1, stdout: "F: warning: waits is an older name of wait\n", stderr: "F: limit: Invalid value: 6: too much\nF: wait.port: Required value\n"},
		"C7/both names":                   {file: "wait: {port: 1}\nwaits: {port: 2}\n", code: 1, stdout: "F: warning: waits is an older name of wait\n", stderr: "F: waits: Forbidden: differs from wait at port: set one of the two only\n"},
		"OLD-35/a key without effect":     {file: "name: a\ngone: 1\n", stdout: "F: warning: gone has no effect: nobody wants it\n"},
		"OPB-5/a fault of another key":    {file: "name: '-'\n", code: 1, stderr: "F: label: Invalid value: \"-\": no name\n"},
		"CFG-3/a key twice":               {file: "name: a\nname: b\n", code: 1, stderr: "F: yaml: unmarshal errors: line 2: key \"name\" already set in map\n"},
		"CFG-2/another kind":              {file: "apiVersion: things/v1\nkind: Foo\n", code: 1, stderr: "F: error decoding config: no kind \"Foo\" is registered for version \"things/v1\" in scheme: want kind \"Thing\" of version \"things/v1\"\n"},
		"no YAML":                         {file: "a: b\nc: [\n", code: 1, stderr: "F: "},
		"JSON":                            {file: "{\"name\": \"a\",\n \"limit\": 7}", code: 1, stderr: "F: limit: Invalid value: 7: too much\n"},
		"effective":                       {file: "name: a\n", flags: []string{"--effective"}, stdout: "limit: 1\nlit: false\nname: a\nparts: null\nquick: null\ntags: null\nwait: null\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			must.Succeed(t, os.WriteFile(file, []byte(tc.file), 0o600))
			code, out, errOut := run(t, command, append([]string{"validate-config", file}, tc.flags...)...)
			out, errOut = strings.ReplaceAll(out, file, "F"), strings.ReplaceAll(errOut, file, "F")
			expect.True(t, code == tc.code && out == tc.stdout, "exit code %d, stdout %q", code, out)
			if name == "no YAML" && strings.HasPrefix(errOut, tc.stderr) && strings.Count(errOut, "\n") == 1 {
				return // The rest is the parser's.
			}
			expect.DeepEqual(t, errOut, tc.stderr)
		})
	}
	if code, _, errOut := run(t, command, "validate-config"); code != 2 || errOut != "Error: want at least one FILE\nSee 'thing validate-config --help'\n" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for file, content := range map[string]string{good: "waits: {port: 1}\n", bad: "naem: a\n"} {
		must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
	}
	// CLI-9 (several files): each is checked, whatever is wrong with the others.
	code, out, errOut := run(t, command, "validate-config", bad, "/none", good)
	if want := bad + ": naem: Forbidden: unknown key\n/none: error reading config file: open /none: no such file or directory\n"; code != 2 || errOut != want || out != good+": warning: waits is an older name of wait\n" {
		t.Errorf("CLI-9: exit code %d: %s%s", code, out, errOut)
	}
	code, out, _ = run(t, command, "validate-config", "-o", "json", bad, good)
	var got []remark
	err := json.Unmarshal([]byte(out), &got)
	expect.True(t, err == nil && code == 1, "CLI-9: exit code %d: %v", code, err)
	want := []remark{{bad, "error", "naem: Forbidden: unknown key"}, {good, "warning", "waits is an older name of wait"}}
	expect.DeepEqual(t, got, want, "CLI-9")
	if code, out, _ := run(t, command, "validate-config", "-o", "json", "--strict-config=false", bad); code != 0 || !strings.Contains(out, `"warning"`) {
		t.Errorf("CLI-9: exit code %d: %s", code, out)
	}
	if code, _, _ := run(t, command, "validate-config", "-o", "json", bad, "/none"); code != 2 {
		t.Errorf("CLI-9: a file that is not there: exit code %d", code)
	}
	if code, _, _ := run(t, command, "validate-config", bad, bad); code != 1 {
		t.Errorf("CLI-9: files with faults: exit code %d", code)
	}
	if code, _, errOut := run(t, command, "validate-config", "/none"); code != 2 || errOut != "/none: error reading config file: open /none: no such file or directory\n" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// CLI-9 (a command of verbs alone): it prints its help, its verbs have exit codes of their own, and the shell completes their arguments.
func TestVerbsAlone(t *testing.T) {
	c := Command{Name: "kubectl thing", Short: "Ask things", Subcommands: []Subcommand{{
		Name: "ask", Short: "Ask", Operand: "KIND NAME", Fault: 2, Codes: []Term{{"0", "nothing found"}, {"1", "something found"}, {"2", "an error"}},
		Arguments: func(arguments []string) error {
			return expect.Holds(len(arguments) == 2, "want a kind and a name")
		},
		Complete: func(_ *pflag.FlagSet, arguments []string, begun string) []string {
			return []string{strings.Join(append(arguments, begun+"…"), "/")}
		},
		CompleteFlags: map[string]func(*pflag.FlagSet, string) []string{"in": func(*pflag.FlagSet, string) []string { return []string{"there"} }},
		Flags:         func(set *pflag.FlagSet) { set.String("in", "", "where") },
		Run: func(set *pflag.FlagSet, _ io.Writer) error {
			if set.Arg(0) == "fault" {
				return errors.New("away")
			}
			return ExitCode(1)
		},
	}}}
	for name, tc := range map[string]struct {
		arguments   []string
		code        int
		out, errOut string
	}{
		"CLI-9/no verb":          {nil, 0, "Ask things\n\nUsage:\n  kubectl thing COMMAND\n\nCommands:\n  ask         Ask\n  completion  Generate the autocompletion script for the specified shell\n  version     Print the version\n", ""},
		"CLI-9/something found":  {[]string{"ask", "a", "b"}, 1, "", ""},
		"CLI-9/a fault":          {[]string{"ask", "fault", "b"}, 2, "", "Error: away\n"},
		"CLI-9/an argument less": {[]string{"ask", "a"}, 2, "", "Error: want a kind and a name\nSee 'kubectl thing ask --help'\n"},
		"CLI-9/codes":            {[]string{"ask", "--help"}, 0, "Ask\n\nUsage:\n  kubectl thing ask KIND NAME [flags]\n", ""},
		"CLI-9/names":            {[]string{"__complete", "ask", "a", "b"}, 0, "a/b…\n:4\n", ""},
		"CLI-9/values of flags":  {[]string{"__complete", "ask", "--in", ""}, 0, "there\n:4\n", ""},
		"CLI-9/an unknown verb":  {[]string{"aks"}, 2, "", "Error: unknown command \"aks\" for \"kubectl thing\", did you mean ask?\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := run(t, c, tc.arguments...)
			if code != tc.code || !strings.HasPrefix(out, tc.out) || !strings.HasPrefix(errOut, tc.errOut) && tc.arguments[0] != "__complete" {
				t.Errorf("exit code %d, stdout:\n%s\nstderr:\n%s", code, out, errOut)
			}
			if name == "CLI-9/codes" && !strings.Contains(out, "Exit codes:\n  0  nothing found\n  1  something found\n  2  an error\n") {
				t.Errorf("CLI-9: no exit codes in\n%s", out)
			}
		})
	}
}
