// Package e2e runs the executables as processes, and does to them what happens to processes: kill -9, signals, rotated
// certificates, API servers that go away, a second instance.
package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/harness"
)

var (
	landscape *harness.Landscape
	binary    string
	workDir   string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	var err error
	if workDir, err = os.MkdirTemp("", "espalier-e2e-"); err != nil {
		return fail(err)
	}
	if binary, err = harness.Build(workDir, "resource-manager"); err != nil {
		return fail(err)
	}
	if landscape, err = harness.StartLandscape(ctx, filepath.Join(workDir, "clusters"), false, nil); err != nil {
		return fail(err)
	}
	defer landscape.Stop()
	code := m.Run()
	if code == 0 {
		_ = os.RemoveAll(workDir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are in", workDir)
	}
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}
