package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/espalier-project/espalier/test/must"
)

var (
	search = flag.Bool("simulate", false, "let TestInvariants search")
	first  = flag.Int("simulate.first", 1, "first seed of TestSeeds")
	runs   = flag.Int("simulate.runs", 150, "how many seeds TestSeeds runs")
	until  = flag.Bool("simulate.until", false, "TestSeeds ends with the first finding")
	only   = flag.String("simulate.seed", "", "a seed, as in 12, or one with changes, as in 12/7/3, whose run TestSeed tells")
	tell   = flag.Bool("simulate.log", false, "TestSeed prints the engine's log, too")
)

func TestMain(m *testing.M) {
	// Logs of the libraries are dropped. Their handler of errors limits itself by one clock for all bubbles.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
	flag.Parse()
	// A run leaves some megabytes of garbage behind and nothing else.
	debug.SetGCPercent(800)
	if repeatable {
		runtime.MemProfileRate = 0 // Each collection would scan all notes.
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(3 << 30)
	}
	os.Exit(m.Run())
}

// alike makes what was before make no difference to the next run: the caches of the libraries are filled, and no garbage is collected
// during a run, as that would interrupt goroutines.
func alike(t *testing.T, generator *rapid.Generator[*Scenario], run happening) func() {
	if !repeatable {
		return func() {}
	}
	const whichever = 1
	run(t, generator.Example(whichever), logr.Discard())
	return func() {
		// Pools are empty after two collections.
		runtime.GC()
		runtime.GC()
	}
}

// TestInvariants lets rapid search, and shrink what it finds.
func TestInvariants(t *testing.T) {
	if !*search {
		t.Skip("make simulate runs it")
	}
	rapid.Check(t, func(rt *rapid.T) {
		scenario := drawScenario(rt)
		if result := Run(t, scenario, logr.Discard()); len(result.Violations) > 0 {
			rt.Fatalf("%s\n%s\n%s", result.Violations[0], scenario, result.Trace())
		}
	})
}

var (
	generator      = rapid.Custom(drawScenario)
	holdsGenerator = rapid.Custom(drawHolds)
	// storeFaultsGenerator draws scenarios in which etcd and kube-apiserver lose events and answer with earlier states.
	storeFaultsGenerator = rapid.Custom(drawStoreFaults)
)

// TestSeeds runs a number of seeds: one seed is one scenario. Without flags these are always the same.
func TestSeeds(t *testing.T) { runSeeds(t, generator, Run, *runs) }

// TestHoldSeeds is TestSeeds for scenarios with holds (MRF-10 … MRF-16), with two thirds as many: so many that shares of them say something.
func TestHoldSeeds(t *testing.T) { runSeeds(t, holdsGenerator, Run, *runs*2/3) }

// TestStoreFaultSeeds is TestSeeds for scenarios with faults of the store (MRB-47).
func TestStoreFaultSeeds(t *testing.T) { runSeeds(t, storeFaultsGenerator, Run, *runs/4) }

// collectEvery is how many of many runs share their garbage: to collect after each takes a quarter of the time, and what pools have
// changes one run in ten.
const collectEvery = 64

// enoughForShares is from how many runs on a share of them says something.
const enoughForShares = 100

// happening lets a scenario happen.
type happening = func(*testing.T, *Scenario, logr.Logger) Result

func runSeeds(t *testing.T, generator *rapid.Generator[*Scenario], run happening, runs int) {
	begin, found, findings, requests := time.Now(), map[string][]int{}, 0, 0
	var excused excuses
	collect := alike(t, generator, run)
	letter := ""
	switch generator {
	case holdsGenerator:
		letter = withHolds
	case storeFaultsGenerator:
		letter = withStoreFaults
	}
	for seed := *first; seed < *first+runs; seed++ {
		done := seed - *first
		if done%collectEvery == 0 {
			collect()
		}
		if done > 0 && done%1000 == 0 {
			t.Logf("%d runs in %v, %d with findings", done, time.Since(begin).Round(time.Second), findings)
		}
		result := run(t, generator.Example(seed), logr.Discard())
		requests += result.Requests
		excused.add(result.Excuses)
		if len(result.Violations) == 0 {
			continue
		}
		findings++
		v := result.Violations[0]
		found[v.Invariant] = append(found[v.Invariant], seed)
		t.Errorf("run %d, seed %s%d: %s", done+1, letter, seed, v)
		collect()
		again := run(t, generator.Example(seed), logr.Discard())
		t.Logf("seed %s%d was run once more: %d findings", letter, seed, len(again.Violations))
		if len(again.Violations) == 0 {
			t.Logf("%s\n%s", generator.Example(seed), result.Trace())
		}
		if *until {
			break
		}
	}
	for name, seeds := range found {
		t.Logf("%s: %d runs, such as seeds %s%v", name, len(seeds), letter, seeds[:min(len(seeds), 8)])
	}
	if excused.runs > 0 {
		t.Log(excused.String())
	}
	if text := excused.tooMany(); text != "" && runs >= enoughForShares {
		t.Errorf("excused too often: %s", text)
	}
	t.Logf("%d runs in %v, %d with findings, %d requests", runs, time.Since(begin).Round(time.Second), findings, requests)
}

// TestSeed tells the run of one seed.
func TestSeed(t *testing.T) { tellSeed(t, generator, Run) }

func tellSeed(t *testing.T, generator *rapid.Generator[*Scenario], run happening) {
	if *only == "" {
		t.Skip("no seed")
	}
	logger := logr.Discard()
	if *tell {
		logger = funcr.New(func(prefix, arguments string) { fmt.Println(time.Now().Format("04:05.000000"), prefix, arguments) }, funcr.Options{Verbosity: 1})
	}
	scenario, err := lineage(*only).scenario(generator)
	must.Succeed(t, err)
	alike(t, generator, run)()
	result := run(t, scenario, logger)
	t.Logf("%s\n%s", scenario, result.Trace())
	for _, v := range result.Violations {
		t.Error(v)
	}
}
