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
