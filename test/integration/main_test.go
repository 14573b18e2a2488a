// Package integration runs resource-manager as a process between two real clusters and checks what anybody could see.
package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/espalier-project/espalier/test/env/harness"
)

var (
	landscape *harness.Landscape
	running   *harness.Process
	binary    string
)

func TestMain(m *testing.M) {
	// The same objects each time, so that a change is judged by what it changes; -rapid.seed draws others.
	_ = flag.Set("rapid.seed", "1")
	os.Exit(harness.RunSuite(m, "integration", true, start))
}

func start(ctx context.Context, s *harness.Suite) (func() error, error) {
	landscape, binary = s.Landscape, s.Binary
	var err error
	running, err = harness.Run(harness.ProcessOptions{
		Binary: s.Binary, Dir: filepath.Join(s.Dir, "process"), Source: s.Seed, Target: s.Shoot,
		Config: map[string]any{
			"logLevel": "debug", "logFormat": "text",
			"controllers": map[string]any{
				"clusterID":       "seed-1",
				"managedResource": map[string]any{"syncPeriod": "1h", "auditPeriod": "1m"},
				"health":          map[string]any{"syncPeriod": "15s"},
			},
		},
	})
	if err != nil {
		return nil, err
	}
	end := func() error {
		if code := running.Stop(); code != 0 {
			return fmt.Errorf("resource-manager ended with %d", code)
		}
		return nil
	}
	return end, running.AwaitReady(ctx)
}
