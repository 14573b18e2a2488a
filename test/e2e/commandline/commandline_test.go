// Package commandline runs the executables as processes and checks what their command lines answer, without any cluster.
package commandline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/env/cluster"
	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/env/kubeconfig"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// kinds are those of the configuration files, by executable.
var kinds = map[string]string{
	"resource-manager":      "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n",
	"admission-controller":  "apiVersion: admissioncontroller.config.gardener.cloud/v1alpha1\nkind: AdmissionControllerConfiguration\n",
	"node-agent-authorizer": "apiVersion: nodeagentauthorizer.config.gardener.cloud/v1alpha1\nkind: NodeAgentAuthorizerConfiguration\n",
}

const root = "../../.."

var binaries string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (int, error) {
	var err error
	if binaries, err = os.MkdirTemp("", "espalier-commandline-"); err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(binaries) }()
	for _, name := range append(slices.Collect(maps.Keys(kinds)), harness.Client) {
		if _, err := harness.Build(binaries, name); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}

type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, name string, environment []string, arguments ...string) result {
	t.Helper()
	command := exec.Command(filepath.Join(binaries, name), arguments...)
	var out, errOut bytes.Buffer
	command.Stdout, command.Stderr = &out, &errOut
	command.Env = append(os.Environ(), environment...)
	_ = command.Run()
	must.True(t, command.ProcessState != nil, "%s does not start", name)
	return result{command.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// CLI-1 … CLI-6: what is asked for is on stdout, what is wrong once on stderr; 0 is only for what went well.
func TestAnswers(t *testing.T) {
	for name, kind := range kinds {
		usage := "\nSee '" + name + " --help'\n"
		for rule, tc := range map[string]struct {
			arguments      []string
			code           int
			stdout, stderr string // how they begin; nothing means that they are empty
		}{
			"CLI-2 version":                   {[]string{"--version", "--config=/none"}, 0, name + " v", ""},
			"CLI-2 raw version":               {[]string{"--version=raw"}, 0, "version.Info{", ""},
			"CLI-5/CLI-6 no file":             {nil, 1, "", "Error: missing config file\n"},
			"CLI-5 unreadable":                {[]string{"--config=/none"}, 1, "", "Error: error reading config file: open /none: no such file or directory\n"},
			"CFG-2 another kind":              {[]string{"--config=" + write(t, "kind: Foo")}, 1, "", `Error: error decoding config: no kind "Foo" is registered for version "` + strings.Fields(kind)[1] + `" in scheme`},
			"CFG-4/CFG-6 two faults":          {[]string{"--config=" + write(t, "logLevel: 5\nlogFormat: y\n")}, 1, "", "Error: error decoding config: logFormat: Invalid value: true: must be a string\nError: error decoding config: logLevel: Invalid value: 5: must be a string\n"},
			"CLI-4 unknown flag":              {[]string{"--foo"}, 1, "", "Error: unknown flag: --foo" + usage},
			"CLI-4 argument":                  {[]string{"x"}, 1, "", `Error: unknown command "x" for "` + name + `"` + usage},
			"CLI-1 help":                      {[]string{"--help"}, 0, "", ""},
			"verbs need their operand":        {[]string{"validate-config"}, 2, "", "Error: want at least one FILE\nSee '" + name + " validate-config --help'\n"},
			"OPB-1 valid, but not known":      {[]string{"validate-config", write(t, kind+"foo: 1\nleaderElection: {leaderElect: false}\n"), "--strict-config=false"}, 0, "", ""},
			"OPB-1 an unknown key is a fault": {[]string{"validate-config", write(t, kind+"\n\nfoo: 1\nleaderElection: {leaderElect: false}\n")}, 1, "", ""},
		} {
			t.Run(name+"/"+rule, func(t *testing.T) {
				got := run(t, name, nil, tc.arguments...)
				expect.Equal(t, got.code, tc.code, "exit code")
				switch rule {
				case "CLI-1 help":
					tc.stdout = got.stdout // Looked at below.
				case "OPB-1 valid, but not known":
					tc.stdout = tc.arguments[1] + ": warning: unknown key foo is ignored\n"
				case "OPB-1 an unknown key is a fault":
					tc.stderr = tc.arguments[1] + ": foo: Forbidden: unknown key\n"
				}
				expect.True(t, begins(got.stdout, tc.stdout) && begins(got.stderr, tc.stderr),
					"stdout:\n%s\nstderr:\n%s", got.stdout, got.stderr)
				if first, _, _ := strings.Cut(got.stderr, "\n"); first != "" && strings.Count(got.stdout+got.stderr, first) != 1 {
					t.Errorf("said more than once: %s", first)
				}
			})
		}
	}
}

// CLI-8: exit code 1 says that there is something to write, so that faults have another one.
func TestTakeoverFaults(t *testing.T) {
	for _, name := range []string{"resource-manager", "admission-controller"} {
		for _, tc := range []struct {
			arguments []string
			stderr    string
		}{
			{[]string{"--config=" + write(t, kinds[name])}, "Error: takeover needs --dry-run: to write, start " + name + "\nSee '" + name + " takeover --help'\n"},
			{[]string{"--dry-run", "--foo"}, "Error: unknown flag: --foo\n"},
			{[]string{"--dry-run"}, "Error: missing config file\n"},
			{[]string{"--dry-run", "-o=table"}, "Error: invalid argument \"table\" for \"-o, --output\" flag: want json or yaml\n"},
		} {
			got := run(t, name, []string{"KUBECONFIG=" + write(t, "")}, append([]string{"takeover"}, tc.arguments...)...)
			expect.True(t, got.code == 2 && strings.HasPrefix(got.stderr, tc.stderr),
				"CLI-8 %s %v: exit code %d, stdout %s, stderr %s", name, tc.arguments, got.code, got.stdout, got.stderr)
		}
	}
}

func begins(text, want string) bool {
	return strings.HasPrefix(text, want) && (want != "" || text == "")
}

// CLI-3: what only resource-manager has.
func TestResourceManager(t *testing.T) {
	for rule, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"OPB-2":                     {[]string{"--config=" + write(t, "{}")}, "Error: leaderElection.resourceNamespace: Required value\n"},
		"OLD-20 old flags are read": {[]string{"--sync-period=1s", "--leader-election=false"}, "Error: controllers.managedResources.syncPeriod: Invalid value: \"1s\": must be at least 15s\n"},
		"CLI-4 in a verb":           {[]string{"rights", "--foo"}, "Error: unknown flag: --foo\nSee 'resource-manager rights --help'\n"},
		"MRC-3b with its key":       {[]string{"validate-config", write(t, "leaderElection: {leaderElect: false}\ncontrollers:\n  managedResource:\n    syncPeriod: 1s\n")}, ": controllers.managedResources.syncPeriod: Invalid value: \"1s\": must be at least 15s\n"},
		"OPB-2 with another fault":  {[]string{"validate-config", write(t, "logLevel: x\n")}, ": logLevel: Unsupported value: \"x\": "},
		"OLD-32 with its new key":   {[]string{"validate-config", write(t, "leaderElection: {leaderElect: false}\ncontrollers:\n  kubeletCSRApprover:\n    enabled: true\n    concurrentSyncs: 0\n")}, ": controllers.csrApprover.concurrentSyncs: Invalid value: 0: must be at least 1\n"},
	} {
		t.Run(rule, func(t *testing.T) {
			got := run(t, "resource-manager", nil, tc.arguments...)
			if tc.arguments[0] == "validate-config" {
				tc.want = tc.arguments[1] + tc.want
			}
			expect.True(t, got.code == 1 && strings.HasPrefix(got.stderr, tc.want),
				"exit code %d, stdout:\n%s\nstderr:\n%s", got.code, got.stdout, got.stderr)
		})
	}
}

// OPB-2: whoever checks a file on another machine is told what a Pod adds.
func TestNamespaceOfThePod(t *testing.T) {
	file := write(t, "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nleaderElection:\n  leaderElect: true\n")
	want := result{stdout: file + ": warning: leaderElection.resourceNamespace is not set: a Pod takes its own namespace, elsewhere nothing starts\n"}
	expect.Equal(t, run(t, "resource-manager", nil, "validate-config", file), want)
	if got := run(t, "resource-manager", nil, "--config="+file); got.code != 1 || !strings.Contains(got.stderr, "leaderElection.resourceNamespace: Required value") {
		t.Errorf("OPB-2: got %+v", got)
	}
}

// CLI-6, OPB-8: once there is a log, an error is in it, and nowhere else.
func TestErrorsOfTheStartAreInTheLog(t *testing.T) {
	ports, err := cluster.FreePorts(3)
	must.Succeed(t, err)
	server := fmt.Sprintf("server: {webhooks: {port: %d}, healthProbes: {port: %d}, metrics: {port: %d}}\n", ports[0], ports[1], ports[2])
	for name, kind := range kinds {
		got := run(t, name, []string{"KUBECONFIG=/none", "TARGET_KUBECONFIG=/none"}, "--config="+write(t, kind+server+"leaderElection: {leaderElect: false}\n"))
		errors := 0
		for line := range strings.Lines(got.stderr) {
			entry := map[string]any{}
			if err := json.Unmarshal([]byte(line), &entry); err != nil {
				t.Fatalf("%s: %s: %v", name, line, err)
			}
			if text, _ := entry["error"].(string); strings.Contains(text, "open /none: no such file or directory") {
				errors++
			}
		}
		expect.True(t, got.code == 1 && got.stdout == "" && errors == 1,
			"%s: exit code %d, stdout %q, stderr:\n%s", name, got.code, got.stdout, got.stderr)
	}
}

// section returns what the help has under a heading.
func section(help, heading string) string {
	_, text, _ := strings.Cut(help, "\n"+heading+":\n")
	text, _, _ = strings.Cut(text, "\n\n")
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimPrefix(line, "  "))
	}
	return strings.TrimSuffix(b.String(), "\n") + "\n"
}

// The help names everything that it promises; its smallest configuration is one, and its documents are there.
func TestHelp(t *testing.T) {
	for name := range kinds {
		help := run(t, name, nil, "--help").stdout
		for _, part := range []string{"\nIt runs ", "\nUsage:\n", "\nFlags:\n", "\n  KUBECONFIG ", "\nExit codes:\n  0  ", "validate-config", "completion"} {
			expect.Contains(t, help, part, "%s: the help", name)
		}
		expect.Equal(t, run(t, name, nil, "validate-config", write(t, section(help, "Smallest configuration"))), (result{}), "%s: the smallest configuration", name)
		for _, document := range strings.Fields(section(help, "Documents")) {
			expect.Succeed(t, expect.ErrorOf(os.Stat(filepath.Join(root, document))), "%s", name)
		}
		if deprecated := section(help, "Deprecated flags"); name == "resource-manager" && (!strings.Contains(deprecated, "--sync-period duration") || !strings.Contains(deprecated, "use controllers.managedResource.syncPeriod\n")) {
			t.Errorf("OLD-20: %s", deprecated)
		}
	}
}

// roffMacros are all that a man page of ours needs.
var roffMacros = []string{".TH ", ".SH ", ".PP", ".TP", ".B ", ".nf", ".fi"}

// rendered fails if a man page has a line that no macro explains, or if groff, where it is installed, complains about it.
func rendered(t *testing.T, page string) {
	t.Helper()
	content, err := os.ReadFile(page)
	must.Succeed(t, err)
	for i, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(line, ".") && !slices.ContainsFunc(roffMacros, func(macro string) bool { return strings.HasPrefix(line, macro) }) {
			t.Errorf("CLI-61: %s:%d: no macro is %q", filepath.Base(page), i+1, line)
		}
	}
	for _, part := range []string{".TH ", "\n.SH NAME\n", "\n.SH SYNOPSIS\n"} {
		if !strings.Contains(string(content), part) {
			t.Errorf("CLI-61: %s has no %q", filepath.Base(page), part)
		}
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		if out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("CLI-61: %s: %v: %s", filepath.Base(page), err, out)
		}
	}
}

// Each command of the executables and the client has a man page.
func TestManPages(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Keys(kinds)), harness.Client) {
		dir := t.TempDir()
		must.Equal(t, run(t, name, nil, "man", "--dir="+dir), (result{}))
		pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
		must.True(t, err == nil && len(pages) >= 4, "%s: %v %v", name, pages, err)
		for _, page := range pages {
			rendered(t, page)
		}
		for command := range strings.Lines(section(run(t, name, nil, "--help").stdout, "Commands")) {
			verb, _, _ := strings.Cut(command, " ")
			if page := filepath.Join(dir, name+"-"+verb+".1"); !slices.Contains(pages, page) {
				t.Errorf("CLI-61: no page %s", filepath.Base(page))
			}
		}
	}
}

// TestKubectlEspalier: the client has the verbs about live objects, and completes arguments by the name that kubectl uses.
func TestKubectlEspalier(t *testing.T) {
	const completer = "kubectl_complete-espalier"
	must.Succeed(t, os.Symlink(harness.Client, filepath.Join(binaries, completer)))
	completed := run(t, completer, []string{"KUBECONFIG=/none"}, "why", "--output", "j")
	expect.True(t, completed.code == 0 && strings.HasPrefix(completed.stdout, "json\njsonpath=\n:4\n"),
		"CLI-9: exit code %d, %s%s", completed.code, completed.stdout, completed.stderr)
	help := run(t, harness.Client, nil)
	expect.Contains(t, help.stdout, "\nUsage:\n  kubectl espalier COMMAND\n", "CLI-9: the help")
	for _, verb := range []string{"why", "tree", "diff", "hold", "release", "confirm", "manifests", "check", "completion", "version"} {
		expect.True(t, help.code == 0 && strings.Contains(help.stdout, "\n  "+verb+" "),
			"CLI-60: exit code %d, no verb %s in\n%s%s", help.code, verb, help.stdout, help.stderr)
	}
	for _, document := range strings.Fields(section(help.stdout, "Documents")) {
		expect.Succeed(t, expect.ErrorOf(os.Stat(filepath.Join(root, document))), "CLI-9")
	}
	if got := run(t, "kubectl-espalier", nil, "tree", "--help"); !strings.Contains(got.stdout, "\nConnection flags, which are those of kubectl:\n  --as --as-group --as-uid ") {
		t.Errorf("CLI-50: %s", got.stdout)
	}
	if got := run(t, "kubectl-espalier", nil, "why", "pod"); got.code != 2 || got.stderr != "Error: want KIND NAME or KIND/NAME\nSee 'kubectl espalier why --help'\n" {
		t.Errorf("CLI-10: exit code %d, %s", got.code, got.stderr)
	}
	if got := run(t, "kubectl-espalier", []string{"KUBECONFIG=/none", "KUBERNETES_SERVICE_HOST="}, "why", "pod", "x"); got.code != 2 || !strings.HasPrefix(got.stderr, "Error: source: no configuration has been provided") {
		t.Errorf("CLI-10: exit code %d, %s", got.code, got.stderr)
	}
}

// TestKinds: validate-config refuses the configuration of another executable, and a dump without a garden has an exit code of its own.
func TestKinds(t *testing.T) {
	for content, want := range map[string]string{"kind: Foo\n": `no kind "Foo"`, "kind: [": "line 1"} {
		if got := run(t, "resource-manager", nil, "validate-config", write(t, content)); got.code != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("CLI-9: %q: %+v", content, got)
		}
	}
	expect.Equal(t, run(t, "admission-controller", nil, "validate-config", write(t, kinds["resource-manager"])).code, 1,
		"CLI-9: a configuration of another executable")
	if got := run(t, "admission-controller", []string{"KUBECONFIG=" + kubeconfig.File(t, kubeconfig.Nowhere)}, "dump", t.TempDir()); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "connection refused") {
		t.Errorf("CLI-9: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// The effective configuration has the defaults, the kind and the values of the environment.
func TestEffectiveConfiguration(t *testing.T) {
	for name, parts := range map[string][]string{
		"resource-manager":      {"kind: ResourceManagerConfiguration", "port: 9449", "syncPeriod: 1m0s", "kubeconfig: /from/environment"},
		"admission-controller":  {"kind: AdmissionControllerConfiguration", "port: 2721", "qps: 50", "kubeconfig: /from/environment"},
		"node-agent-authorizer": {"kind: NodeAgentAuthorizerConfiguration", "port: 9449", "maxStaleness: 10m0s", "kubeconfig: /from/environment"},
	} {
		got := run(t, name, []string{"KUBECONFIG=/from/environment"}, "validate-config", "--effective", "--strict-config=false", write(t, "leaderElection: {leaderElect: false}\n"))
		for _, part := range parts {
			expect.True(t, got.code == 0 && strings.Contains(got.stdout, part),
				"%s: exit code %d, %q is missing in\n%s%s", name, got.code, part, got.stdout, got.stderr)
		}
	}
}
