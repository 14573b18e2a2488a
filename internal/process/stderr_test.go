package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestOutputIsPlain: whatever a verb prints, or has in its error, cannot steer the terminal.
func TestOutputIsPlain(t *testing.T) {
	const harmful = "\x1b]0;title\x07\u009b31m\u202eevil"
	code, stdout, stderr := run(t, Command{Name: "thing", Flags: func(*pflag.FlagSet) {}, Subcommands: []Subcommand{{
		Name: "show", Short: "Show it", Run: func(_ *pflag.FlagSet, out io.Writer) error {
			_, _ = io.WriteString(out, harmful+"\n")
			return errors.New(harmful)
		},
	}}}, "show")
	const want = `\u001b]0;title\u0007\u009b31m\u202eevil` + "\n"
	expect.True(t, code == 1 && stdout == want && stderr == "Error: "+want,
		"CLI-40: exit code %d: printed %q, and %q", code, stdout, stderr)
}

// TestOneWayOut: executables print through the writers of Execute and Stderr only, so that nothing reaches a terminal as it is.
func TestOneWayOut(t *testing.T) {
	direct := regexp.MustCompile(`\bos\.(Stdout|Stderr)\b|\bfmt\.Print(f|ln)?\(`)
	excused := []string{"internal/process/command.go", "internal/gen/", "internal/tools/"}
	root := filepath.Join("..", "..")
	for _, below := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, below), func(path string, entry fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
				slices.ContainsFunc(excused, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				return err
			}
			content, err := os.ReadFile(path)
			for i, line := range strings.Split(string(content), "\n") {
				expect.False(t, direct.MatchString(line), "CLI-40: %s:%d prints past the printer: %s", name, i+1, line)
			}
			return err
		})
		must.Succeed(t, err)
	}
}
