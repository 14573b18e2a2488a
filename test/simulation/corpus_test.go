package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/must"
)

var update = flag.Bool("simulate.update", false, "TestCorpus writes the digests of the scenarios that seeds draw now")

const corpusFile = "corpus/seeds.txt"

// corpusRow is a seed that once found a defect.
type corpusRow struct {
	seed                       lineage
	digest, who, found, broken string
}

// TestCorpus runs the seeds that once found a defect. A seed whose digest differs draws another scenario than the one that found it.
func TestCorpus(t *testing.T) {
	text, err := os.ReadFile(corpusFile)
	must.Succeed(t, err)
	var written strings.Builder
	for line := range strings.Lines(string(text)) {
		row, err := corpusRowOf(line)
		must.Succeed(t, err)
		if row == nil {
			written.WriteString(line)
			continue
		}
		scenarios, run := generator, Run
		if row.who == "controllers" {
			scenarios, run = controllersGenerator, RunControllers
		}
		if *update {
			row.digest = digestOf(t, scenarios, row.seed)
			fmt.Fprintf(&written, "%s | %s | %s | %s | %s\n", row.seed, row.digest, row.who, row.found, row.broken)
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", row.who, row.seed), func(t *testing.T) {
			if digest := digestOf(t, scenarios, row.seed); digest != row.digest {
				t.Errorf("seed %s does not draw the scenario any more that found %q: digest %s, not %s (see the head of %s)", row.seed, row.found, digest, row.digest, corpusFile)
			}
			result := run(t, scenarioOf(t, scenarios, row.seed), logr.Discard())
			for _, v := range result.Violations {
				t.Errorf("seed %s, which once found %q: %s", row.seed, row.found, v)
			}
			if len(result.Violations) > 0 {
				t.Logf("%s\n%s", scenarioOf(t, scenarios, row.seed), result.Trace())
			}
		})
	}
	if *update {
		must.Succeed(t, os.WriteFile(corpusFile, []byte(written.String()), 0o600))
	}
}

// corpusRowOf reads a line: seed | digest | who | what it found | by which invariant. Comments and empty lines are no rows.
func corpusRowOf(line string) (*corpusRow, error) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	cells := strings.Split(line, " | ")
	if len(cells) != 5 {
		return nil, fmt.Errorf("%s: %d cells in %q, 5 are expected", corpusFile, len(cells), line)
	}
	if cells[2] != "engine" && cells[2] != "controllers" {
		return nil, fmt.Errorf("%s: %q is no row", corpusFile, line)
	}
	return &corpusRow{lineage(cells[0]), cells[1], cells[2], cells[3], cells[4]}, nil
}

func scenarioOf(t *testing.T, scenarios *rapid.Generator[*Scenario], seed lineage) *Scenario {
	t.Helper()
	scenario, err := seed.scenario(scenarios)
	must.Succeed(t, err)
	return scenario
}

// digestOf names the scenario that a seed draws.
func digestOf(t *testing.T, scenarios *rapid.Generator[*Scenario], seed lineage) string {
	sum := sha256.Sum256([]byte(scenarioOf(t, scenarios, seed).String()))
	return hex.EncodeToString(sum[:6])
}
