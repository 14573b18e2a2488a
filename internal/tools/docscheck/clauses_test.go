package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClauses: clauses count in comments of the product, not in code, tests and tools.
func TestClauses(t *testing.T) {
	root := t.TempDir()
	for file, content := range map[string]string{
		"api/a.go": "package a\n\n// A is what B tells of. // It says whether.\nvar A = \"is what\"\n", "cmd/b_test.go": "// is what\n",
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
	if got := checkClauses(root, 4); got != nil {
		t.Errorf("at the budget: %v", got)
	}
	if got := checkClauses(root, 3); len(got) != 1 {
		t.Errorf("above the budget: %v", got)
	}
}
