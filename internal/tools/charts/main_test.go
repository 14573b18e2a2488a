package charts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// binaries is the folder of the executables, work one that is removed at the end.
var binaries, work string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "espalier-charts-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	work = dir
	code := 1
	if binaries, err = executables(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
		if started != nil {
			started.Stop()
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// executables returns the folder of the executables: the one that make test has built for all suites, or one in dir.
func executables(dir string) (string, error) {
	if shared := os.Getenv("ESPALIER_BINARIES"); shared != "" {
		return shared, nil
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", "./cmd/...")
	build.Dir = filepath.Dir(deploy)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the executables: %w: %s", err, out)
	}
	return filepath.Join(dir, "bin"), nil
}

// run returns what an executable prints.
func run(name string, arguments ...string) (string, error) {
	command := exec.Command(filepath.Join(binaries, name), arguments...)
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(failed.String()))
	}
	return out.String(), nil
}
