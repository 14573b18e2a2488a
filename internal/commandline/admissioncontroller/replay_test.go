package admissioncontroller

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/gen/auditgen"
	"github.com/espalier-project/espalier/test/gen/builders"
	"github.com/espalier-project/espalier/test/must"
)

// TestReplayPage: the page about replay shows what the verb prints.
func TestReplayPage(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	page, err := os.ReadFile(filepath.Join("docs", "operations", "replay.md"))
	must.Succeed(t, err)
	for _, more := range [][]string{{"--compare", "docs/examples/replay/narrow.yaml"}, {"--without-edges", "GE-45"}} {
		arguments := append([]string{"replay", "--audit-log", "docs/examples/replay/audit.log"}, more...)
		var out strings.Builder
		code := process.Execute(Command(), arguments, &out, &out)
		expect.Equal(t, code, 1, "RPL-2: exit code %d: %s", code, out.String())
		expect.Contains(t, string(page), "$ admission-controller "+strings.Join(arguments, " ")+"\n"+out.String(),
			"RPL-2: docs/operations/replay.md does not show")
	}
}

// TestMain lets the test be the other executable of --against, which has a configuration of its own.
func TestMain(m *testing.M) {
	if os.Getenv("OTHER_RELEASE") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("OTHER_RELEASE") == "broken" {
		_, _ = os.Stdout.WriteString("x\n")
		os.Exit(0)
	}
	os.Exit(process.Execute(Command(), append(os.Args[1:], "--config", os.Getenv("OTHER_RELEASE")), os.Stdout, os.Stderr))
}

// TestReplayAgainst: another executable decides about the same log, and what it decides differently is printed.
func TestReplayAgainst(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	t.Chdir(filepath.Join("..", "..", ".."))
	for name, c := range map[string]struct {
		other, config string
		code          int
		want          string
	}{
		"RPL-8/a narrower one":  {"docs/examples/replay/narrow.yaml", "", 1, "2      SR-26  gardenlet of Seed:b  shoots.core.gardener.cloud  get,list  Allow  NoOpinion"},
		"RPL-8/one that fails":  {"docs/examples/absent.yaml", "", 2, "absent.yaml"},
		"RPL-8/the same":        {"docs/examples/replay/narrow.yaml", "docs/examples/replay/narrow.yaml", 0, "0 of 6 decisions differ"},
		"RPL-8/one that breaks": {"broken", "", 2, "prints no decision"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTHER_RELEASE", c.other)
			arguments := []string{"replay", "--audit-log", "docs/examples/replay/audit.log", "--against", self}
			if c.config != "" {
				arguments = append(arguments, "--config", c.config)
			}
			var out strings.Builder
			if code := process.Execute(Command(), arguments, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, out.String())
			}
		})
	}
	var out strings.Builder
	code := process.Execute(Command(), []string{"replay", "--audit-log", "-", "--against", self}, &out, &out)
	expect.Equal(t, code, 2, "RPL-8: exit code %d: %s", code, out.String())
}

// TestReplay: the verb says with its exit code whether something differs, and prints the table.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	var text strings.Builder
	log := auditgen.New(&text)
	log.Add(auditgen.Operator("create seeds.core.gardener.cloud /a", json.RawMessage(builders.Seed("a").JSON())))
	log.Add(auditgen.Operator("create shoots.core.gardener.cloud garden-dev/web", json.RawMessage(builders.Shoot("garden-dev", "web").OnSeed("b").JSON())))
	log.Add(auditgen.Seed("a", "get shoots.core.gardener.cloud garden-dev/web"))
	must.Succeed(t, log.Flush())
	logged, junk := file("audit.log", text.String()+"junk\n"), file("junk.log", "junk\n")
	narrow, wrong := file("narrow.yaml", "server: {seedAuthorizer: {readScope: Related}}"), file("wrong.yaml", "server: {seedAuthorizer: {readScope: Some}}")
	const row = "1      SR-26  gardenlet of Seed:a  shoots.core.gardener.cloud  get    Allow  NoOpinion  log         get shoots.core.gardener.cloud garden-dev/web ("
	for name, c := range map[string]struct {
		arguments []string
		code      int
		want      string
	}{
		"RPL-1/as the log says":          {[]string{"--audit-log", logged}, 0, "0 of 1 decisions differ; 4 lines.\n1 lines are no audit events: " + logged + " line 4 is no JSON object\n"},
		"RPL-1/not as the log says":      {[]string{"--audit-log", logged, "--config", narrow}, 1, row},
		"RPL-2/two configurations":       {[]string{"--audit-log", logged, "--compare", narrow}, 1, row},
		"RPL-2/two profiles":             {[]string{"--audit-log", logged, "--profile", "gardener"}, 1, "SR-26"},
		"RPL-2/two of the same":          {[]string{"--audit-log", logged, "--config", narrow, "--compare", narrow}, 0, "0 of 1 decisions differ"},
		"RPL-2/without an edge":          {[]string{"--audit-log", logged, "--without-edges", "GE-46"}, 0, "0 of 1"},
		"RPL-1/as JSON":                  {[]string{"--audit-log", logged, "--config", narrow, "-o", "json"}, 1, `"differences": [`},
		"RPL-2/no such edge":             {[]string{"--audit-log", logged, "--without-edges", "nothing"}, 2, "there is no edge nothing"},
		"RPL-4/nothing but junk":         {[]string{"--audit-log", junk}, 2, "no line is an audit event: " + junk + " line 1 is no JSON object"},
		"RPL-4/no log":                   {nil, 2, "replay needs --audit-log"},
		"RPL-2/a wrong configuration":    {[]string{"--audit-log", logged, "--compare", wrong}, 2, "server.seedAuthorizer.readScope"},
		"RPL-4/another form of printing": {[]string{"--audit-log", logged, "-o", "yaml"}, 2, "want text or json"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			code := process.Execute(Command(), append([]string{"replay"}, c.arguments...), &out, &out)
			expect.True(t, code == c.code && strings.Contains(out.String(), c.want),
				"exit code %d, want %d: %s", code, c.code, out.String())
		})
	}
}
