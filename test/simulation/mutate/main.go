// mutate puts the defects of test/simulation/mutants back, one at a time, into a copy of the module, and prints which invariant
// of the simulation finds each, and after how many runs. A finding counts if the same seed ends well without the defect; the simulation
// is built so that one seed is one run. A patch of what cannot show in the simulated world begins with the test that finds it, as "Found by: <package> <test>";
// that one must fail with the patch, and pass without. It must be run in the root of the module.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// finding is how the simulation tells of one.
var finding = regexp.MustCompile(`seed (\d+): (.*) at [0-9.hmsµn]+: `)

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
	base, err := build(filepath.Join(dir, "base"), "")
	if err != nil {
		return err
	}
	fmt.Println("| defect put back | found by | in run |\n|---|---|---|")
	survivors := 0
	for i, patch := range patches {
		invariant, found, err := find(filepath.Join(dir, strconv.Itoa(i)), patch, base, runs)
		if err != nil {
			return fmt.Errorf("%s: %w", patch, err)
		}
		if invariant == "" {
			survivors++
			invariant = "-"
		}
		fmt.Printf("| %s | %s | %s |\n", strings.TrimSuffix(filepath.Base(patch), ".patch"), invariant, found)
	}
	if survivors > 0 {
		return fmt.Errorf("%d defects were not found", survivors)
	}
	return nil
}

// foundBy is how a patch names the test that finds it.
var foundBy = regexp.MustCompile(`(?m)^Found by: (\./\S+) (Test\w+)$`)

// find returns what finds the defect of a patch, "" for nothing, and the run in which it does.
func find(dir, patch, base string, runs int) (invariant, run string, err error) {
	text, err := os.ReadFile(patch)
	if err != nil {
		return "", "", err
	}
	if named := foundBy.FindSubmatch(text); named != nil {
		invariant, err := byTest(dir, patch, string(named[1]), string(named[2]))
		return invariant, "a unit test", err
	}
	mutant, err := build(dir, patch)
	if err != nil {
		return "", "", err
	}
	invariant, seed, err := search(testOf(patch), mutant, base, runs)
	if seed == 0 {
		return "", fmt.Sprintf("none of %d", runs), err
	}
	return invariant, strconv.Itoa(seed), err
}

// byTest returns a test if it passes without a patch, and fails with it.
func byTest(dir, patch, pkg, test string) (string, error) {
	if err := copyModule(dir); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in a temporary folder
	run := []string{"go", "test", "-trimpath", "-count=1", "-timeout=5m", "-run=^" + test + "$", "-v", pkg}
	output, err := in(dir, run...)
	if err != nil || !strings.Contains(output, "--- PASS: "+test) {
		return "", fmt.Errorf("%s does not pass without the defect: %w: %s", test, err, output)
	}
	if err := apply(dir, patch); err != nil {
		return "", err
	}
	if output, err = in(dir, run...); err == nil {
		return "", nil
	}
	if !strings.Contains(output, "--- FAIL: "+test) && !strings.Contains(output, "panic: ") {
		return "", fmt.Errorf("%s could not be run with the defect: %s", test, output)
	}
	return "`" + test + "`", nil
}

// testOf is the test that is to find the defect of a patch: names that begin with c are about the controllers beside the engine.
func testOf(patch string) string {
	if strings.HasPrefix(filepath.Base(patch), "c-") {
		return "TestControllerSeeds"
	}
	return "TestSeeds"
}

// search returns the first seed of 1 … runs with which a mutant is found and the base is not, and the invariant; 0 if there is none.
func search(test, mutant, base string, runs int) (invariant string, seed int, err error) {
	for first := 1; first <= runs; first = seed + 1 {
		if invariant, seed, err = simulate(test, mutant, first, runs-first+1); seed == 0 || err != nil {
			return "", 0, err
		}
		if _, without, err := simulate(test, base, seed, 1); err != nil || without == 0 {
			return invariant, seed, err
		}
	}
	return "", 0, nil
}

// build returns the simulation with a patch, "" for none.
func build(dir, patch string) (string, error) {
	if err := copyModule(dir); err != nil {
		return "", err
	}
	if patch != "" {
		if err := apply(dir, patch); err != nil {
			return "", err
		}
	}
	if output, err := in(dir, "go", "run", "./test/simulation/repeatable", "-o", dir+".test"); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return dir + ".test", os.RemoveAll(dir)
}

// copyModule copies what is under version control.
func copyModule(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	copied := exec.Command("bash", "-c", `git ls-files -z go.mod go.sum api internal deploy test | tar --null -T - -c | tar -x -C "$0"`, dir)
	if output, err := copied.CombinedOutput(); err != nil {
		return fmt.Errorf("copying the module: %w: %s", err, output)
	}
	return nil
}

func apply(dir, patch string) error {
	absolute, err := filepath.Abs(patch)
	if err != nil {
		return err
	}
	if output, err := in(dir, "git", "apply", "-C1", "--recount", absolute); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// in runs a command in a copy. git must not take that for a part of a repository around it.
func in(dir string, command ...string) (string, error) {
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	output, err := c.CombinedOutput()
	return string(output), err
}

// simulate runs seeds from first on until one is found; seed is 0 if none is.
func simulate(test, binary string, first, runs int) (invariant string, seed int, err error) {
	c := exec.Command(binary, "-test.run="+test+"$", "-test.timeout="+(time.Hour).String(), "-simulate.until",
		fmt.Sprintf("-simulate.first=%d", first), fmt.Sprintf("-simulate.runs=%d", runs))
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	output, err := c.CombinedOutput()
	if m := finding.FindSubmatch(output); m != nil {
		seed, err := strconv.Atoi(string(m[1]))
		return string(m[2]), seed, err
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", 0, fmt.Errorf("it ended without a finding: %s", output[max(0, len(output)-2000):])
	}
	return "", 0, err
}
