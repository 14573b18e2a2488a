package kubectl

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// CLI-12 (diff prints what diff -u prints): the hunks are those of GNU diff where that finds a shortest way, and always turn one text into the other.
func TestUnified(t *testing.T) {
	text := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	ten := strings.Split("0123456789", "")
	changed := append(append([]string{}, ten[:5]...), append([]string{"x"}, ten[6:]...)...)
	for name, tc := range map[string]struct{ before, after, want string }{
		"CLI-12/the same":         {text("a"), text("a"), ""},
		"CLI-12/nothing before":   {"", text("a", "b"), "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"CLI-12/nothing after":    {text("a"), "", "@@ -1 +0,0 @@\n-a\n"},
		"CLI-12/in the middle":    {text(ten...), text(changed...), "@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		"CLI-12/first and last":   {text(ten...), text(append(append([]string{"x"}, ten[1:9]...), "y")...), "@@ -1,4 +1,4 @@\n-0\n+x\n 1\n 2\n 3\n@@ -7,4 +7,4 @@\n 6\n 7\n 8\n-9\n+y\n"},
		"CLI-12/close to another": {text(ten[:7]...), text("x", "1", "2", "3", "4", "5", "y"), "@@ -1,7 +1,7 @@\n-0\n+x\n 1\n 2\n 3\n 4\n 5\n-6\n+y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			want := "diff -u -N a b\n"
			if tc.want != "" {
				want += "--- a\n+++ b\n" + tc.want
			}
			expect.Equal(t, unified("a", "b", tc.before, tc.after), want, "CLI-12")
		})
	}
	long := unified("a", "b", strings.Repeat("a\n", 3000)+"b\n", strings.Repeat("c\n", 3000)+"d\n")
	expect.Equal(t, strings.Count(long, "\n"), 3+6003, "CLI-12: two long texts without anything in common: lines")
}

// CLI-12: the printed difference, applied by git, turns one text into the other.
func TestPropertyUnified(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", "d: e"})
		draw := func(label string) string {
			all := rapid.SliceOfN(line, 1, 30).Draw(rt, label)
			return strings.Join(all, "\n") + "\n"
		}
		before, after := draw("before"), draw("after")
		file := filepath.Join(dir, "file")
		must.Succeed(rt, os.WriteFile(file, []byte(before), 0o600))
		if before == after {
			return
		}
		patch := unified("a/file", "b/file", before, after)
		command := exec.Command("git", "apply")
		command.Dir = dir
		command.Stdin = strings.NewReader(patch)
		if out, err := command.CombinedOutput(); err != nil {
			rt.Fatalf("CLI-12: %v: %s\n%s", err, out, patch)
		}
		got, err := os.ReadFile(file)
		expect.True(rt, err == nil && string(got) == after,
			"CLI-12: %v: patched to\n%s\nwant\n%s\nby\n%s", err, got, after, patch)
	})
}
