package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Suite is what the tests of a package have in common.
type Suite struct {
	*Landscape
	// Binary is resource-manager, Dir a folder for what processes need and write.
	Binary, Dir string
}

// RunSuite starts a landscape, runs the tests of a package, and returns the exit code. before may start more; what it returns
// is called afterwards. The folder stays if anything fails.
func RunSuite(tests interface{ Run() int }, name string, controllerManager bool, before func(context.Context, *Suite) (func() error, error)) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "espalier-"+name+"-")
	if err != nil {
		return fail(err)
	}
	code := runSuite(tests, &Suite{Dir: dir}, controllerManager, before)
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are in", dir)
	}
	return code
}

func runSuite(tests interface{ Run() int }, s *Suite, controllerManager bool, before func(context.Context, *Suite) (func() error, error)) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var err error
	if s.Binary, err = Build(s.Dir, "resource-manager"); err != nil {
		return fail(err)
	}
	if s.Landscape, err = StartLandscape(ctx, filepath.Join(s.Dir, "clusters"), controllerManager, nil); err != nil {
		return fail(err)
	}
	defer s.Stop()
	after, err := before(ctx, s)
	if err != nil {
		return fail(err)
	}
	code := tests.Run()
	if err := after(); err != nil {
		return fail(err)
	}
	return code
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// GardenSuite is what the tests of a garden have in common.
type GardenSuite struct {
	*Garden
	// Binary is admission-controller, Dir a folder for what processes need and write.
	Binary, Dir string
	Process     *Process
}

// RunGardenSuite starts a garden with admission-controller, runs the tests of a package, and returns the exit code.
func RunGardenSuite(tests interface{ Run() int }, config map[string]any, use func(*GardenSuite)) int {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "espalier-garden-")
	if err != nil {
		return fail(err)
	}
	code := runGardenSuite(tests, dir, config, use)
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are in", dir)
	}
	return code
}

func runGardenSuite(tests interface{ Run() int }, dir string, config map[string]any, use func(*GardenSuite)) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s := &GardenSuite{Dir: dir}
	var err error
	if s.Binary, err = Build(dir, "admission-controller"); err != nil {
		return fail(err)
	}
	if s.Garden, err = StartGarden(ctx, filepath.Join(dir, "garden"), nil); err != nil {
		return fail(err)
	}
	defer s.Stop()
	if s.Process, err = s.Run(GardenProcessOptions{Binary: s.Binary, Dir: filepath.Join(dir, "process"), Config: config}); err != nil {
		return fail(err)
	}
	if err := s.Process.AwaitReady(ctx); err != nil {
		return fail(err)
	}
	if err := s.Restrict(ctx, s.Process); err != nil {
		return fail(err)
	}
	use(s)
	code := tests.Run()
	if ended := s.Process.Stop(); ended != 0 {
		return fail(fmt.Errorf("admission-controller ended with %d: %s", ended, lastLines(s.Process.Output(), 5)))
	}
	return code
}
