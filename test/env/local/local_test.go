package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/env/harness"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestTour runs what make up ONCE=1 runs.
func TestTour(t *testing.T) {
	root, err := harness.Root()
	must.Succeed(t, err)
	bin := t.TempDir()
	for _, name := range []string{"resource-manager", "admission-controller", "node-agent-authorizer"} {
		must.Succeed(t, expect.ErrorOf(harness.Build(bin, name)))
	}
	work := t.TempDir()
	must.Succeed(t, os.Symlink(filepath.Join(root, "docs"), filepath.Join(work, "docs")))
	t.Chdir(work)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	must.Succeed(t, run(ctx, bin, true, &times{}))
}
