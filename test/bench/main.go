// bench measures the executables as processes against real clusters and prints a table: median, minimum and maximum of each figure.
//
//	make bench                                        everything, once
//	make bench ONLY=drift                             one scenario
//	make bench REF_RM=<file> REF_AC=<file>            three turns, each of ours and of the reference's executables
//	make bench … RESULTS=<folder> LIMIT=10m           one piece of that; the same command goes on with the next one
//	make bench … RESULTS=<folder> UPDATE=1            the same, and writes the tables of the pages
//
// Absolute figures move with the machine: only figures of one run are compared. Nothing here fails because of a figure.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/env/harness"
)

// pages have the tables.
var pages = []string{"README.md", "docs/internals/performance.md", "docs/internals/performance-garden.md", "docs/operations/sizing.md"}

func main() {
	bin := flag.String("bin", "bin", "folder with the executables")
	only := flag.String("only", "", "regular expression of the scenarios to run")
	profile := flag.String("profile", "", "folder for processor profiles of resource-manager, one a process, of its first seconds")
	seconds := flag.Int("seconds", 15, "length of the profiles")
	resourceManager := flag.String("ref-rm", "", "executable of the reference's resource-manager")
	admissionController := flag.String("ref-ac", "", "executable of the reference's admission-controller")
	turns := flag.Int("turns", 0, "how often a scenario runs that both sides can run; by default three times with a reference, and once without")
	limit := flag.Duration("limit", 0, "time after which no further turn begins")
	results := flag.String("results", "", "folder for the figures of each turn; turns that it has are not run again")
	update := flag.Bool("update", false, "write the tables into the pages, with date, commit, machine and version of Kubernetes")
	flag.Parse()
	log.SetLogger(logr.Discard())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	b := &bench{profile: *profile, seconds: *seconds, results: *results, turns: *turns, limit: *limit}
	b.sides = []*side{{binaries: map[string]string{}}}
	for _, name := range executables {
		b.sides[0].binaries[name] = filepath.Join(*bin, name)
	}
	if *resourceManager != "" && *admissionController != "" {
		b.sides = append(b.sides, &side{reference: true, binaries: map[string]string{"resource-manager": *resourceManager, "admission-controller": *admissionController}})
	}
	err := b.run(ctx, *only)
	b.print(os.Stdout) // Also after a failure, the figures that were measured.
	if *update && err == nil {
		for _, page := range pages {
			err = errors.Join(err, b.updatePage(page))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// executables are those of bin, with what each is compared with.
var executables = []string{"resource-manager", "admission-controller", "node-agent-authorizer", harness.Client}

// scenario is measured with the executables of one side.
type scenario struct {
	name string
	run  func(context.Context, *bench) error
	// compared scenarios can be run with the reference's executables, and are repeated.
	compared bool
	// clusters are a seed and a shoot; each side gets new ones.
	clusters bool
}

var scenarios = []scenario{
	{"executable", executable, true, false},
	{"idle", idle, true, true},
	{"start", startUp, true, true},
	{"many", manyManagedResources, true, true},
	{"large", largeManagedResource, true, true},
	{"drift", driftRepair, true, true},
	{"gatekeeper", gatekeeper, true, false},
	{"burst", burst, false, true},
	{"landscape", thousandManagedResources, false, true},
	{"tracker", trackerRun, false, false},
	{"checks", checks, false, false},
	{"sizes", sizes, false, false},
	{"references", references, false, false},
}

// run runs the turns of scenarios that are not among the results yet.
func (b *bench) run(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "espalier-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	began := time.Now()
	for _, s := range scenarios {
		turns := 1
		if s.compared {
			turns = cmp.Or(b.turns, 2*len(b.sides)-1)
		}
		for turn := range turns {
			saved, err := b.load(s.name, turn)
			if err != nil {
				return err
			}
			if saved || !pattern.MatchString(s.name) || b.limit > 0 && time.Since(began) > b.limit {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s running %s, turn %d\n", time.Now().UTC().Format(time.TimeOnly), s.name, turn+1)
			if err := b.turn(ctx, s, turn); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// turn runs a scenario with each side, of which another one begins each time, and saves the figures.
func (b *bench) turn(ctx context.Context, s scenario, number int) error {
	b.current = &turn{Scenario: s.name, Run: b.describe(ctx)}
	defer b.stopGarden()
	for i := range b.sides {
		b.side = b.sides[(i+number)%len(b.sides)]
		if b.side.reference && !s.compared {
			continue
		}
		err := b.isolated(ctx, s)
		if err != nil && b.side.reference && ctx.Err() == nil {
			b.current.Failed, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
	}
	return b.save(number)
}

// isolated runs a scenario in a folder and with clusters of its own, so that none works on objects that another one has left.
func (b *bench) isolated(ctx context.Context, s scenario) error {
	var err error
	if b.folder, err = os.MkdirTemp(b.dir, s.name+"-"); err != nil {
		return err
	}
	if s.clusters {
		if b.Landscape, err = harness.StartLandscape(ctx, b.folder, s.name == "landscape", nil); err != nil {
			return err
		}
		defer b.Stop()
		// The API server delays creations by two seconds while a CustomResourceDefinition is younger than that.
		young := b.SeedClient.Create(ctx, harness.ManagedResource("default", "young", "young"), client.DryRunAll)
		if err := errors.Join(young, b.noteVersion(b.SeedREST)); err != nil {
			return err
		}
	}
	return s.run(ctx, b)
}
