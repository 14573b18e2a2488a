package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const fixtureCode = `package fixture

import "errors"

var errNegative = errors.New("negative")

// Clamp is tested at each boundary.
func Clamp(n, most int) (int, error) {
	if n < 0 {
		return 0, errNegative
	}
	if n > most {
		n = most
	}
	return n, nil
}

// Both is tested with equal arguments only.
func Both(a, b bool) bool { return a && b }

// Even is tested as callers use it: nobody checks the first result of a failure.
func Even(n int) (bool, error) {
	if _, err := Clamp(n, 9); err != nil {
		return false, err
	}
	return n%2 == 0, nil
}

// Count is not tested.
func Count(list []string) int {
	_ = make(map[string]bool, len(list)+1)
	n := 0
	for range list {
		n++
	}
	return n
}
`

const fixtureTest = `package fixture

import "testing"

func TestClamp(t *testing.T) {
	for _, c := range []struct{ n, want int }{{0, 0}, {1, 1}, {5, 5}, {6, 5}} {
		if got, err := Clamp(c.n, 5); got != c.want || err != nil {
			t.Error(c, got, err)
		}
	}
	if got, err := Clamp(-1, 5); got != 0 || err == nil {
		t.Error(got, err)
	}
}

func TestEven(t *testing.T) {
	if even, err := Even(2); !even || err != nil {
		t.Error(even, err)
	}
	if even, err := Even(3); even || err != nil {
		t.Error(even, err)
	}
	if _, err := Even(-1); err == nil {
		t.Error("no error")
	}
}

func TestBoth(t *testing.T) {
	if !Both(true, true) || Both(false, false) {
		t.Error("wrong")
	}
}
`

func fixture(t *testing.T) string {
	root := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/fixture\n\ngo 1.26\n", "internal/fixture/fixture.go": fixtureCode, "internal/fixture/fixture_test.go": fixtureTest} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReportsSurvivors(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), &out, options{root: fixture(t), patterns: []string{"./internal/fixture"}, most: 20, workers: 2, perTest: 60e9})
	if !errors.Is(err, errSurvivors) {
		t.Errorf("run returned %v, %v is expected", err, errSurvivors)
	}
	for _, line := range []string{
		"fixture.go:19: Both: and is or `a && b`\n",
		"fixture.go:32: Count: off by one `0` (no test reaches it)\n",
		"fixture.go:34: Count: drop `n++` (no test reaches it)\n",
		// n > most and n >= most do the same, as both set n to most.
		"fixture.go:12: Clamp: boundary `n > most`\n",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is missing in\n%s", line, &out)
		}
	}
	for _, told := range []string{"swallow", "drop `n = most`", "boundary `n < 0`", "flip", "off by one `1`"} {
		if strings.Contains(out.String(), told) {
			t.Errorf("%q is reported, although a test notices it:\n%s", told, &out)
		}
	}
}

func TestJudgesChangedFunctions(t *testing.T) {
	root := fixture(t)
	git := func(arguments ...string) {
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, arguments...)...)
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, output)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	path := filepath.Join(root, "internal/fixture/fixture.go")
	if err := os.WriteFile(path, []byte(strings.Replace(fixtureCode, "return a && b", "return b && a", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "internal/fixture/new.go"), []byte("package fixture\n\nfunc one() int { return 1 }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, options{root: root, since: "HEAD", most: 100, workers: 2, perTest: 60e9}); err != nil {
		t.Fatal(err)
	}
	if want := "| all | 2 | 0 | 1 | 1 | 0 | 100.0 |\n\ninternal/fixture/fixture.go:19: Both: and is or `b && a`\ninternal/fixture/new.go:3: one: off by one `1` (no test reaches it)\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("it printed\n%s\nand should end with\n%s", &out, want)
	}
}

func TestAcceptedSurvivors(t *testing.T) {
	mutants := []mutant{{file: "a.go", function: "f", defect: "drop", text: "x()"}, {file: "a.go", function: "f", defect: "drop", text: "y()"}}
	sum, told := tallyOf(mutants, []verdict{survived, survived}, acceptedSurvivors("# a log line\na.go f drop x()\n"))
	if sum.rate() != 50 || sum[acceptedVerdict] != 1 || len(told) != 1 {
		t.Errorf("%v, %q: one of two is accepted", sum, told)
	}
	sum, told = tallyOf(mutants, []verdict{survived, unreached}, acceptedSurvivors("# generated pages\na.go *\n"))
	if sum[acceptedVerdict] != 2 || len(told) != 0 {
		t.Errorf("%v, %q: all of the file are accepted", sum, told)
	}
	sum, told = tallyOf(append(mutants, mutant{file: "a.go", function: "g"}), []verdict{survived, survived, survived}, acceptedSurvivors("a.go f *\n"))
	if sum[acceptedVerdict] != 2 || len(told) != 1 {
		t.Errorf("%v, %q: all of a function are accepted", sum, told)
	}
}

func TestUpdatesThePage(t *testing.T) {
	root := fixture(t)
	page := filepath.Join(root, "page.md")
	old := "# Figures\n\n" + pageBegin + "\n" + pageHead + "| internal/a | 10 | 10 | 9 | 0 | 1 | 0.0 | 2026-01-01 | |\n| internal/fixture | 1 | 1 | 1 | 0 | 0 | 0.0 | 2026-01-01 | |\n| **all** | 0 |\n\n" + pageEnd + "\nafter\n"
	if err := os.WriteFile(page, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, options{root: root, page: "page.md", patterns: []string{"./internal/fixture"}, most: 100, workers: 2, perTest: 60e9, each: 60e9}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| internal/a | 10 | 10 | 9 | 0 | 1 | 0.0 | 2026-01-01 | |\n", "| internal/fixture | 17 | 17 | 12 | 5 | 0 | 29.4 | ", "| **all** | 27 | 27 | 21 | 5 | 1 | 18.5 | | |\n",
		"# Figures\n", pageEnd + "\nafter\n",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}
