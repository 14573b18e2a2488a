package simulation

import (
	"flag"
	"testing"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"
)

var onlyAct = flag.String("simulate.act", "", "the only controllers that are simulated; the meaning of a seed depends on it")

var controllersGenerator = rapid.Custom(func(t *rapid.T) *Scenario { return drawControllers(t, *onlyAct) })

// TestControllers lets rapid search, and shrink what it finds.
func TestControllers(t *testing.T) {
	if !*search {
		t.Skip("make simulate runs it")
	}
	rapid.Check(t, func(rt *rapid.T) {
		scenario := drawControllers(rt, *onlyAct)
		if result := RunControllers(t, scenario, logr.Discard()); len(result.Violations) > 0 {
			rt.Fatalf("%s\n%s\n%s", result.Violations[0], scenario, result.Trace())
		}
	})
}

// TestControllerSeeds is TestSeeds for the controllers beside the engine.
func TestControllerSeeds(t *testing.T) { runSeeds(t, controllersGenerator, RunControllers, *runs) }

// TestControllerSeed is TestSeed for them.
func TestControllerSeed(t *testing.T) { tellSeed(t, controllersGenerator, RunControllers) }
