// versus runs the head-to-head with the executables of the reference on one machine: the scenarios of the benchmarks side by side, and the
// hand-over from the reference to ours and back.
//
//	make versus REF_RM=<gardener-resource-manager> REF_AC=<gardener-admission-controller>
//
// Both sides get the same configuration, in the form that gardenlet and gardener-operator render, the same clusters and the same rights. The exit
// code is 0 if the hand-over property holds, 1 if it does not or something could not be measured, and 2 if an executable of the reference is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// options are the command line.
type options struct {
	resourceManager, admissionController string
	bin, only                            string
	turns                                int
	draw                                 uint64
	alwaysUpdate                         bool
}

func main() {
	var o options
	flag.StringVar(&o.resourceManager, "ref-rm", os.Getenv("REF_RM"), "executable of gardener-resource-manager")
	flag.StringVar(&o.admissionController, "ref-ac", os.Getenv("REF_AC"), "executable of gardener-admission-controller")
	flag.StringVar(&o.bin, "bin", "bin", "folder with our executables")
	flag.StringVar(&o.only, "only", "executable,idle,start,many,large,bulk,gatekeeper", "scenarios of the benchmarks, separated by commas; none for none")
	flag.IntVar(&o.turns, "turns", 100, "turns of the hand-over; 0 for none")
	flag.Uint64Var(&o.draw, "draw", 0, "what the turns are drawn from; 0 means any")
	flag.BoolVar(&o.alwaysUpdate, "always-update", true, "whether the configuration of the hand-over has alwaysUpdate, as gardenlet renders it")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(run(ctx, o, tools{bench: bench, handOver: handOver}, os.Stdout, os.Stderr))
}

// tools do the work; tests have others.
type tools struct {
	// bench returns the table of a scenario with the executables in a folder, as far as it was measured.
	bench func(ctx context.Context, bin, scenario string) ([]row, error)
	// handOver returns an error if the property does not hold.
	handOver func(context.Context, options) error
}

// run returns the exit code.
func run(ctx context.Context, o options, do tools, out, progress io.Writer) int {
	if err := complete(&o); err != nil {
		_, _ = fmt.Fprintln(progress, err)
		return 2
	}
	code := 0
	failed := func(what string, err error) {
		_, _ = fmt.Fprintf(progress, "%s: %v\n", what, err)
		code = 1
	}
	if o.only != "none" {
		if err := compare(ctx, o, do, out, failed); err != nil {
			failed("benchmarks", err)
		}
	}
	if o.turns > 0 {
		_, _ = fmt.Fprintf(progress, "handing over, %d turns\n", o.turns)
		if err := do.handOver(ctx, o); err != nil {
			failed("the hand-over property", err)
		}
	}
	return code
}

// complete makes paths absolute, and says which executables are missing.
func complete(o *options) error {
	var missing []error
	for _, e := range []struct {
		variable, name string
		file           *string
	}{{"REF_RM", "gardener-resource-manager", &o.resourceManager}, {"REF_AC", "gardener-admission-controller", &o.admissionController}} {
		if *e.file == "" {
			missing = append(missing, fmt.Errorf("%s is not set: it names the executable of %s, built for this machine", e.variable, e.name))
			continue
		}
		absolute, err := filepath.Abs(*e.file)
		if err == nil {
			*e.file = absolute
			err = executable(absolute)
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", e.variable, err))
		}
	}
	if len(missing) > 0 {
		missing = append(missing, errors.New("usage: make versus REF_RM=<gardener-resource-manager> REF_AC=<gardener-admission-controller>"))
	}
	return errors.Join(missing...)
}

func executable(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is no executable", file)
	}
	return nil
}

// compare prints the tables of both sides as one.
func compare(ctx context.Context, o options, do tools, out io.Writer, failed func(string, error)) error {
	dir, err := os.MkdirTemp("", "espalier-versus-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The benchmarks find executables by the names of ours.
	for name, file := range map[string]string{"resource-manager": o.resourceManager, "admission-controller": o.admissionController} {
		if err := os.Symlink(file, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	var ours, theirs []row
	for scenario := range strings.SplitSeq(o.only, ",") {
		// One after the other, so that both find the machine in the same state; one that fails leaves the others alone.
		for _, side := range []struct {
			name, bin string
			rows      *[]row
		}{{"the reference", dir, &theirs}, {"ours", o.bin, &ours}} {
			rows, err := do.bench(ctx, side.bin, scenario)
			if err != nil {
				failed(scenario+" of "+side.name, err)
			}
			*side.rows = append(*side.rows, rows...)
		}
	}
	return printTable(out, ours, theirs)
}

// bench runs the benchmarks as a process. Both sides may do everything, as the reference does not print the rights that it needs.
func bench(ctx context.Context, bin, scenario string) ([]row, error) {
	file, err := os.CreateTemp("", "espalier-versus-*.json")
	if err != nil {
		return nil, err
	}
	_ = file.Close()
	defer func() { _ = os.Remove(file.Name()) }()
	command := exec.CommandContext(ctx, "go", "run", "./test/bench", "-as-admin", "-bin="+bin, "-only=^"+scenario+"$", "-json="+file.Name())
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	failed := command.Run()
	rows, err := readTable(file.Name())
	return rows, errors.Join(failed, err)
}

// handOver runs the turns as a test, which starts the executables under gardenlet's manifests.
func handOver(ctx context.Context, o options) error {
	own, err := filepath.Abs(filepath.Join(o.bin, "resource-manager"))
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "test", "./test/dropin", "-run=^TestHandOver$", "-count=1", "-v", "-timeout=6h", "-args",
		"-reference-rm="+o.resourceManager, "-own-rm="+own, "-turns="+strconv.Itoa(o.turns), "-draw="+strconv.FormatUint(o.draw, 10),
		"-always-update="+strconv.FormatBool(o.alwaysUpdate))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return command.Run()
}
