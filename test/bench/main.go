// bench measures resource-manager as a process against real clusters and prints a table: value, unit, spread, and where
// there is something to compare with, the ratio to it.
//
//	make bench                         everything, some minutes
//	make bench UPDATE=1                the same, and writes the tables into docs/internals/performance.md
//	go run ./test/bench -bin bin -only drift
//
// Absolute figures move with the machine. Ratios "to the reference" are to figures measured once on a machine with two
// cores; ratios "to a bare client" are measured in the same run. Nothing here fails because of a figure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/harness"
)

func main() {
	bin := flag.String("bin", "bin", "folder with the executables")
	only := flag.String("only", "", "regular expression of the scenarios to run")
	profile := flag.String("profile", "", "folder for processor profiles of resource-manager, one a process, of its first seconds")
	seconds := flag.Int("seconds", 15, "length of the profiles")
	asAdmin := flag.Bool("as-admin", false, "let the executables do everything, for those that do not print the rights that they need")
	rows := flag.String("json", "", "file for the table as JSON")
	update := flag.String("update", "", "pages, separated by commas, whose blocks get the tables of the scenarios that ran, with date, commit and machine")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	b := &bench{binary: filepath.Join(*bin, "resource-manager"), profile: *profile, seconds: *seconds, asAdmin: *asAdmin}
	err := run(ctx, b, *only)
	if *rows != "" {
		err = errors.Join(err, b.writeJSON(*rows))
	}
	for page := range strings.SplitSeq(*update, ",") {
		if page != "" {
			err = errors.Join(err, b.updatePage(page, now()))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type scenario struct {
	name string
	run  func(context.Context, *bench) error
}

var scenarios = []scenario{
	{"executable", executable},
	{"idle", idle},
	{"start", startUp},
	{"many", manyManagedResources},
	{"large", largeManagedResource},
	{"bulk", bulk},
	{"landscape", thousandManagedResources},
	{"drift", driftRepair},
	{"tracker", trackerRun},
	{"checks", checks},
	{"gatekeeper", gatekeeper},
	{"size10000", sizeOf(largest, true)},
	{"size100000", sizeOf(huge, true)},
	{"references", references},
}

func run(ctx context.Context, b *bench, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "espalier-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b.dir = dir
	defer b.print(os.Stdout) // Also what there is after a failure.
	for _, s := range scenarios {
		if !pattern.MatchString(s.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "running %s\n", s.name)
		b.running = s.name
		if err := b.isolated(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.finished = append(b.finished, s.name)
	}
	return nil
}

// isolated runs a scenario with clusters of its own, so that none works on what another one has left.
func (b *bench) isolated(ctx context.Context, s scenario) error {
	if !strings.HasPrefix(s.name, "size") && !slices.Contains([]string{"executable", "tracker", "checks", "gatekeeper", "references"}, s.name) {
		var err error
		b.scenario = s.name
		if b.Landscape, err = harness.StartLandscape(ctx, filepath.Join(b.dir, s.name), s.name == "landscape" || s.name == "drift", nil); err != nil {
			return err
		}
		defer b.Stop()
	}
	return s.run(ctx, b)
}
