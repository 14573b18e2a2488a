package authorization

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestDifferences: each difference is counted; of a series one line in ten seconds is logged, with the number of those that were not (SHD-2, SHD-3).
func TestDifferences(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	d := NewDifferences(registry, clock)
	var lines []string
	log := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	refuse := Difference{Authorizer: "a", Rule: "r", Client: "c", Outcome: WouldRefuse}
	other := refuse
	other.Rule = "s"
	undecided, same := refuse, refuse
	undecided.Outcome, same.Outcome = Undecided, Same
	for i, step := range []struct {
		after      time.Duration
		difference Difference
		lines      int
		last       string
	}{
		{0, refuse, 1, `"notLogged":0`}, {0, refuse, 1, ""}, {samplePeriod - 1, refuse, 1, ""}, {0, other, 2, `"notLogged":0`}, {1, refuse, 3, `"notLogged":2`},
		{samplePeriod, refuse, 4, `"notLogged":0`}, {samplePeriod, undecided, 4, ""}, {samplePeriod, same, 4, ""},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		d.Count(step.difference, log, "why", "user", "u")
		if len(lines) != step.lines || step.last != "" && !strings.Contains(lines[len(lines)-1], step.last) {
			t.Errorf("SHD-3: step %d: %d lines, want %d with %s: %v", i, len(lines), step.lines, step.last, lines)
		}
	}
	families, err := registry.Gather()
	must.Succeed(t, err)
	var counted []float64
	for _, series := range families[0].GetMetric() {
		counted = append(counted, series.GetCounter().GetValue())
	}
	slices.Sort(counted)
	expect.DeepEqual(t, counted, []float64{1, 1, 5}, "SHD-2: counted")
	(*Differences)(nil).Count(refuse, log, "why") // Without a shadow policy nothing is counted.
}
