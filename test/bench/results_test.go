package main

import (
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestUpdated: a block has the figures of all turns of its scenarios, and keeps its text if there are none, or if they are of two runs.
func TestUpdated(t *testing.T) {
	by := run{Date: "2026-11-25", Commit: "abc", Machine: "2 cores, CPU"}
	compared := run{Date: "2026-11-26", Commit: "abc", Machine: "2 cores, CPU", Kubernetes: "v1.36.3", Reference: "Gardener v1"}
	other := by
	other.Commit = "def"
	b := &bench{finished: []*turn{
		{Scenario: "checks", Run: by, Rows: []*row{{"check", "ns", "≤ 300", []float64{48}, nil}}},
		{Scenario: "tracker", Run: other},
		{Scenario: "many", Run: compared, Rows: []*row{{"applied", "s", "", []float64{1}, []float64{4}}, {"requests", "", "0", []float64{0}, []float64{406}}}},
		{Scenario: "many", Run: compared, Rows: []*row{{"applied", "s", "", []float64{3, 2}, []float64{8}}}, Failed: "it ends"},
	}}
	const checked = "Measured on 2026-11-25 at commit abc (2 cores, CPU).\n\n" +
		"| what | unit | median | min … max | target |\n|---|---|---|---|---|\n| check | ns | 48.0 |  | ≤ 300 |\n"
	const applied = "Measured on 2026-11-26 at commit abc (Kubernetes v1.36.3, 2 cores, CPU).\n\n" +
		"| what | unit | Espalier | min … max | Gardener v1 | min … max | Espalier ÷ reference | target |\n|---|---|---|---|---|---|---|---|\n" +
		"| applied | s | 2.00 | 1.00 … 3.00 | 8.00 | 4.00 … 8.00 | 0.25 |  |\n| requests |  | 0 |  | 406 |  | 0.00 | 0 |\n" +
		"| many: the reference fails |  |  |  |  |  |  | it ends |\n"
	for name, test := range map[string]struct{ marker, want, problem string }{
		"one scenario":            {"checks", checked, ""},
		"both sides":              {"many", applied, ""},
		"medians alone":           {"many; brief: appl.*", "| measured | Espalier | Gardener v1 |\n|---|---|---|\n| applied | 2.00 s | 8.00 s |\n", ""},
		"medians of ours":         {"many; ours: appl.*", "| measured | Espalier |\n|---|---|\n| applied | 2.00 s |\n", ""},
		"a scenario did not run":  {"checks drift", "old\n", ""},
		"two runs":                {"checks tracker", "old\n", `"abc" and "def" are figures of two runs`},
		"there is no such one":    {"nothing", "old\n", `there is no scenario "nothing"`},
		"the expression is wrong": {"checks; brief: (", "old\n", "error parsing regexp"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.updated("before\n<!-- bench: " + test.marker + " -->\nold\n<!-- /bench -->\nafter\n")
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("error %v, want %q", err, test.problem)
			}
			expect.DeepEqual(t, got, "before\n<!-- bench: "+test.marker+" -->\n"+test.want+"<!-- /bench -->\nafter\n")
		})
	}
}

// TestSaved: a turn that a folder has is not run again, and has the same figures.
func TestSaved(t *testing.T) {
	b := &bench{results: t.TempDir(), current: &turn{Scenario: "idle", Run: run{Commit: "abc"}, Rows: []*row{{What: "memory", Ours: []float64{36}}}}}
	must.Succeed(t, b.save(1))
	again := &bench{results: b.results}
	for number, want := range []bool{false, true} {
		if saved, err := again.load("idle", number); err != nil || saved != want {
			t.Errorf("turn %d: saved %v (%v), want %v", number, saved, err, want)
		}
	}
	expect.DeepEqual(t, again.finished, b.finished)
}
