// Package integration runs resource-manager as a process between two real clusters and looks at what anybody could see.
package integration

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
	running   *harness.Process
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	var err error
	if workDir, err = os.MkdirTemp("", "espalier-integration-"); err != nil {
		return fail(err)
	}
	if binary, err = harness.Build(workDir, "resource-manager"); err != nil {
		return fail(err)
	}
	if landscape, err = harness.StartLandscape(ctx, workDir, true, nil); err != nil {
		return fail(err)
	}
	defer landscape.Stop()
	running, err = harness.Run(harness.ProcessOptions{
		Binary: binary, Dir: filepath.Join(workDir, "process"), Source: landscape.Seed, Target: landscape.Shoot,
		Config: map[string]any{
			"logLevel": "debug", "logFormat": "text",
			"controllers": map[string]any{
				"clusterID":       "seed-1",
				"managedResource": map[string]any{"syncPeriod": "1h"},
				"health":          map[string]any{"syncPeriod": "15s"},
			},
		},
	})
	if err != nil {
		return fail(err)
	}
	if err := running.AwaitReady(ctx); err != nil {
		return fail(err)
	}
	code := m.Run()
	if exit := running.Stop(); exit != 0 {
		fmt.Fprintln(os.Stderr, "resource-manager ended with", exit)
		code = 1
	}
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
