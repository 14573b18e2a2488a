package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
)

// TestTour runs what make up ONCE=1 runs.
func TestTour(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"resource-manager", "admission-controller", "node-agent-authorizer"} {
		if _, err := harness.Build(bin, name); err != nil {
			t.Fatal(err)
		}
	}
	work := t.TempDir()
	if err := os.Symlink(filepath.Join(root, "docs"), filepath.Join(work, "docs")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(work)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if err := run(ctx, bin, true, &times{}); err != nil {
		t.Fatal(err)
	}
}
