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

// binaries is the folder of the executables.
var binaries string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "espalier-charts-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binaries = filepath.Join(dir, "bin")
	build := exec.Command("go", "build", "-o", binaries+"/", "./cmd/...")
	build.Dir = filepath.Dir(deploy)
	code := 1
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the executables: %v: %s\n", err, out)
	} else {
		code = m.Run()
		if started != nil {
			started.Stop()
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
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
