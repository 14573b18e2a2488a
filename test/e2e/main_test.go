// Package e2e runs the executables as processes, and does to them what happens to processes: kill -9, signals, rotated
// certificates, API servers that go away, a second instance.
package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/espalier-project/espalier/test/env/harness"
)

var (
	landscape *harness.Landscape
	binary    string
	workDir   string
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, "e2e", false, func(_ context.Context, s *harness.Suite) (func() error, error) {
		landscape, binary, workDir = s.Landscape, s.Binary, s.Dir
		return func() error { return nil }, nil
	}))
}
