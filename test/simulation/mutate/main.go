// mutate puts the defects of test/simulation/mutants back, one at a time, into a copy of the module, and prints which invariant
// of the simulation finds each, and in which run. It must be run in the root of the module.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// finding is how the simulation tells of one.
var finding = regexp.MustCompile(`run (\d+), seed \d+: (.*) at [0-9.hmsµn]+: `)

func main() {
	runs := flag.Int("runs", 2000, "how many runs a defect may survive")
	only := flag.String("only", "", "the names of the patches to try begin with this")
	flag.Parse()
	if err := run(*runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(runs int, only string) error {
	patches, err := filepath.Glob("test/simulation/mutants/" + only + "*.patch")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "espalier-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	fmt.Println("| defect put back | found by | in run |\n|---|---|---|")
	survivors := 0
	for i, patch := range patches {
		invariant, first, err := try(filepath.Join(dir, fmt.Sprint(i)), patch, runs)
		if err != nil {
			return fmt.Errorf("%s: %w", patch, err)
		}
		if first == "" {
			survivors++
			invariant, first = "-", fmt.Sprintf("none of %d", runs)
		}
		fmt.Printf("| %s | %s | %s |\n", strings.TrimSuffix(filepath.Base(patch), ".patch"), invariant, first)
	}
	if survivors > 0 {
		return fmt.Errorf("%d defects were not found", survivors)
	}
	return nil
}

// try returns the invariant that finds a defect and the first run that does.
func try(dir, patch string, runs int) (invariant, first string, err error) {
	absolute, err := filepath.Abs(patch)
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	copied := exec.Command("bash", "-c", `git ls-files -z go.mod go.sum api internal test | tar --null -T - -c | tar -x -C "$0"`, dir)
	if output, err := copied.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("copying the module: %w: %s", err, output)
	}
	for _, command := range [][]string{
		{"git", "apply", "-C1", "--recount", absolute},
		{"go", "test", "-c", "-o", "simulation.test", "./test/simulation"},
	} {
		c := exec.Command(command[0], command[1:]...)
		// git must not take the copy for a part of a repository around it.
		c.Dir, c.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if output, err := c.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, output)
		}
	}
	c := exec.Command("./simulation.test", "-test.run=TestSeeds$", "-test.timeout="+(time.Hour).String(), "-simulate.until", fmt.Sprintf("-simulate.runs=%d", runs))
	c.Dir, c.Env = dir, append(os.Environ(), "GOMAXPROCS=1")
	output, err := c.CombinedOutput()
	if m := finding.FindSubmatch(output); m != nil {
		return string(m[2]), string(m[1]), nil
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", "", fmt.Errorf("it ended without a finding: %s", output[max(0, len(output)-2000):])
	}
	return "", "", err
}
