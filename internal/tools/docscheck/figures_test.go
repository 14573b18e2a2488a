package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRounds(t *testing.T) {
	for _, c := range []struct {
		measured, repeated string
		want               bool
	}{
		{"19.5", "20", true}, {"19.4", "20", false}, {"3.63", "3.6", true}, {"3.66", "3.6", false}, {"0.00", "0", true}, {"9016", "9,016", true},
		{"9016", "9,000", true}, {"9600", "9,000", false}, {"78.7", "79", true}, {"35.7", "36", true}, {"432", "432", true}, {"11,745", "11,745", true}, {"x", "1", false},
	} {
		if got := rounds(c.measured, c.repeated); got != c.want {
			t.Errorf("%s as %s: %v", c.measured, c.repeated, got)
		}
	}
}

// TestFigures: the figures of the repository are those that were measured, and any other one is found.
func TestFigures(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	if problems := checkFigures(root); len(problems) > 0 {
		t.Fatal(problems)
	}
	files := map[string]string{}
	for _, name := range []string{"README.md", sizing, measurements} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(content)
	}
	for _, c := range []struct{ page, before, after, want string }{
		{"README.md", " MiB | 65 MiB |", " MiB | 66 MiB |", "has 66 where 65 was measured"},
		{measurements, "| resident memory, idle, empty clusters | ", "| resident memory, idle, empty clusters | 1", " was measured"},
		{measurements, "| resident memory, idle, empty clusters | ", "| resident memory | ", "0 times"},
		{sizing, "| nothing to do |", "| less than that | 7 MiB | 1 s |\n| nothing to do |", "nothing compares"},
	} {
		changed := map[string]string{}
		for name, content := range files {
			changed[name] = content
		}
		if changed[c.page] = strings.Replace(files[c.page], c.before, c.after, 1); changed[c.page] == files[c.page] {
			t.Fatalf("%s does not have %q", c.page, c.before)
		}
		found := false
		for _, problem := range checkFigures(write(t, changed)) {
			found = found || strings.Contains(problem.Error(), c.want)
		}
		if !found {
			t.Errorf("%q instead of %q is not found", c.after, c.before)
		}
	}
}
