package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// block is a block of commands, where it stands, and what it must print at the end, if that is said.
type block struct{ where, commands, want string }

// A block may be indented, as part of an item.
var fenced = regexp.MustCompile("(?m)^( *)```(sh|text)\n((?s:.*?))^ *```$")

// blocks are those of a page, in their order. A block of text belongs to the commands right before it.
func blocks(t *testing.T, root, page string) []block {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	must.Succeed(t, err)
	var all []block
	for _, match := range fenced.FindAllSubmatchIndex(content, -1) {
		indent, language, text := string(content[match[2]:match[3]]), string(content[match[4]:match[5]]), string(content[match[6]:match[7]])
		text = strings.ReplaceAll("\n"+text, "\n"+indent, "\n")[1:]
		if language == "sh" {
			all = append(all, block{where: fmt.Sprintf("%s:%d", page, 1+bytes.Count(content[:match[0]], []byte("\n"))), commands: text})
		} else if len(all) > 0 {
			all[len(all)-1].want = text
		}
	}
	must.True(t, len(all) != 0, "%s has no commands", page)
	return all
}

// script is all blocks as one, which ends with the first command that fails, tells where it is, and keeps what each block prints apart.
func script(all []block) string {
	var out strings.Builder
	out.WriteString("set -euo pipefail\n")
	for i, b := range all {
		fmt.Fprintf(&out, "echo '%s'\necho '%s' >&2\n%s\n", mark(i), b.where, b.commands)
	}
	return out.String()
}

func mark(i int) string { return fmt.Sprintf("--- block %d ---", i) }

// The first day of an operator: at most this many commands on a page of at most this many words.
const mostCommands, mostWords = 12, 600

// TestQuickstart follows the quickstart from top to bottom; make firstday prints what it logs.
func TestQuickstart(t *testing.T) {
	const page = "docs/quickstart.md"
	root, err := harness.Root()
	must.Succeed(t, err)
	commands := 0
	for _, b := range blocks(t, root, page) {
		commands += strings.Count(b.commands, "\n")
	}
	content, err := os.ReadFile(filepath.Join(root, page))
	must.Succeed(t, err)
	words := len(strings.Fields(string(content)))
	expect.True(t, commands <= mostCommands && words <= mostWords,
		"%s has %d commands of at most %d, and %d words of at most %d", page, commands, mostCommands, words, mostWords)
	begin := time.Now()
	follow(t, []string{"resource-manager", "helm"}, page)
	t.Logf("%s: %d commands, %d words, %.0f seconds with the start of the cluster", page, commands, words, time.Since(begin).Seconds())
}

// TestWalkthrough installs all executables by their charts, removes and installs them again, breaks them, and finds the way back.
func TestWalkthrough(t *testing.T) {
	follow(t, []string{"resource-manager", "admission-controller", "node-agent-authorizer", "helm"},
		"docs/walkthrough.md", "test/env/quickstart/testdata/faults.md")
}

// TestGuides follows the guides of operators. They work with the same files.
func TestGuides(t *testing.T) {
	follow(t, []string{"resource-manager", "admission-controller", "node-agent-authorizer"},
		"docs/operations/install.md", "docs/operations/upgrade.md", "docs/operations/migrate.md")
}

// follow runs the commands of pages against an API server of their own, in a folder with what they need of the repository.
func follow(t *testing.T, executables []string, pages ...string) {
	root, err := harness.Root()
	must.Succeed(t, err)
	var all []block
	for _, page := range pages {
		all = append(all, blocks(t, root, page)...)
	}
	text := script(all)
	for _, name := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(name); err != nil && strings.Contains(text, name+" ") {
			t.Skipf("%s, which the commands of %v need, is not on this machine", name, pages)
		}
	}
	work := workplace(t, root, executables)
	path := tools(t, work) + string(os.PathListSeparator) + os.Getenv("PATH")
	ends := time.Now().Add(10 * time.Minute)
	if deadline, found := t.Deadline(); found && deadline.Before(ends) {
		ends = deadline.Add(-30 * time.Second) // Time to end what runs, and to say how far it came.
	}
	ctx, cancel := context.WithDeadline(t.Context(), ends)
	defer cancel()
	c, err := start(ctx, filepath.Join(work, ".local", "cluster"), filepath.Join(work, "bin"), func(text string) { t.Log(text) })
	must.Succeed(t, err)
	defer c.stop()

	command := exec.CommandContext(ctx, "bash", "-c", text)
	command.Dir = work
	command.Env = append(os.Environ(), "KUBECONFIG=", "PATH="+path)
	// Processes in the background are of one group, and end with the test.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		_ = command.Cancel()
		log, _ := os.ReadFile(filepath.Join(work, ".local", "quickstart", "log"))
		t.Fatalf("%v\n%s\n%s\nresource-manager: %s", err, stdout.String(), stderr.String(), log)
	}
	for i, b := range all {
		_, printed, _ := strings.Cut(stdout.String(), mark(i)+"\n")
		printed, _, _ = strings.Cut(printed, mark(i+1)+"\n")
		if b.want != "" && !strings.HasSuffix(printed, b.want) {
			t.Errorf("%s printed\n%s\nwant at the end\n%s", b.where, printed, b.want)
		}
		t.Logf("%s\n%s", b.where, printed)
	}
}

// workplace is a folder with what the commands need of the repository, and executables; its Makefile builds nothing.
func workplace(t *testing.T, root string, executables []string) string {
	work := t.TempDir()
	for _, name := range []string{"docs", "deploy"} {
		must.Succeed(t, os.Symlink(filepath.Join(root, name), filepath.Join(work, name)))
	}
	for _, name := range executables {
		if name == "helm" {
			buildHelm(t, root, filepath.Join(work, "bin"))
		} else if _, err := harness.Build(filepath.Join(work, "bin"), name); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, expect.ErrorOf(harness.Build(filepath.Join(work, "bin"), harness.Client)))
	if err := os.Symlink(harness.Client, filepath.Join(work, "bin", "kubectl_complete-espalier")); err != nil { // As make build does.
		t.Fatal(err)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(work, "Makefile"), []byte("build clients:\n"), 0o644))
	return work
}

// buildHelm builds Helm, as make clients does.
func buildHelm(t *testing.T, root, dir string) {
	command := exec.Command("go", "build", "-o", filepath.Join(dir, "helm"), "helm.sh/helm/v4/cmd/helm")
	command.Dir = filepath.Join(root, "internal", "tools", "charts")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building helm: %v: %s", err, out)
	}
}

// tools is a folder with kubectl, if there is none on the machine.
func tools(t *testing.T, work string) string {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return work
	}
	command := exec.Command("go", "run", "./build", "kubectl")
	command.Stderr = os.Stderr
	root, err := harness.Root()
	must.Succeed(t, err)
	command.Dir = filepath.Join(root, "test", "env", "controlplane")
	folder, err := command.Output()
	must.True(t, err == nil, "building kubectl: %v", err)
	return strings.TrimSpace(string(folder))
}
