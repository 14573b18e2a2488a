package reference

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/internal/process"
	"github.com/espalier-project/espalier/test/expect"
)

// TestCommandLine: a flag, a group of flags or a paragraph of several commands stands in the page once.
func TestCommandLine(t *testing.T) {
	c := process.Command{
		Name: "thing", Short: "Do a thing", Prepare: func(*pflag.FlagSet) (logr.Logger, func() error, error) { return logr.Discard(), nil, nil }, Flags: func(*pflag.FlagSet) {},
		Subcommands: []process.Subcommand{{Name: "show", Short: "Show it"}},
	}
	both := func(set *pflag.FlagSet) {
		set.String("config", "", "the `file`")
		set.String("server", "", "")
		process.Group(set.Lookup("server"), "Connection")
	}
	more := func(name string) process.Subcommand {
		return process.Subcommand{Name: name, Short: "Ask", Long: "They ask.", Flags: func(set *pflag.FlagSet) { both(set); set.String(name, "", "own") }, Codes: []process.Term{{Name: "0", Text: "found"}}}
	}
	c.Subcommands = append(c.Subcommands, more("ask"), more("beg"))
	out := CommandLine(c)
	expect.True(t, strings.HasPrefix(out, "# Command line of thing\n") && strings.Contains(out, "\n## show\n"),
		"got:\n%s", out)
	for part, want := range map[string]int{
		"- `--config`: the file\n": 1, "\n```\n--server\n```\n": 1, "They ask.\n": 1, "Common flags: `--config`, connection flags.\n": 1,
		"Common flags: as [ask](#ask).\n": 1, "- `--beg`: own\n": 1, "Exit codes: `0` found.\n": 2, "`1` failure": 0, "help for": 0,
	} {
		got := strings.Count(out, part)
		expect.Equal(t, got, want, "CLI-61: %q stands %d times in the reference, want %d:\n%s", part, got, want, out)
	}
	c.CommonIn = "other"
	if out := CommandLine(c); strings.Contains(out, "--version") || strings.Contains(out, "GOMEMLIMIT") || strings.Contains(out, "\n## version") ||
		!strings.Contains(out, "are those of [other](other-command-line.md).\n") {
		t.Errorf("CLI-61: what every executable has is described twice:\n%s", out)
	}
}
