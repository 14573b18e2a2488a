package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClauses counts clauses in comments, not in code; tests and tools have a budget of their own.
func TestClauses(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"api/a.go": "package a\n\n// A is what B tells of. // It says whether.\nvar A = \"is what\"\n", "cmd/b_test.go": "// TestB: what is old stays.\n// MR-1, MR-2: whoever asks waits.\n// TestC refuses what is old.\n",
		"internal/tools/c.go": "// is what\n", "internal/d/d.go": "x() // looks at it\n", "cmd/c.go": "",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ most, mostInTests, problems int }{
		"within both budgets":       {4, 3, 0},
		"above that of the product": {3, 3, 1},
		"above that of tests":       {4, 2, 1},
	} {
		if got := checkClauses(root, c.most, c.mostInTests); len(got) != c.problems {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
