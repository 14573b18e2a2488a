package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpdated(t *testing.T) {
	b := &bench{finished: []string{"idle", "checks"}, rows: []row{
		{"memory", "36", "MiB", "", "target ≤ 40", "idle"}, {"20 seeds: check", "48", "ns", "", "", "checks"}, {"100 seeds: check", "72", "ns", "", "", "checks"},
	}}
	run := measured{date: "2026-11-25", commit: "commit abc", machine: "2 cores, CPU"}
	table := "Measured on 2026-11-25 at commit abc (2 cores, CPU).\n\n| what | value | unit | spread | compared |\n|---|---|---|---|---|\n"
	for name, test := range map[string]struct{ marker, want, problem string }{
		"all scenarios ran":       {"idle", table + "| memory | 36 | MiB |  | target ≤ 40 |\n", ""},
		"some rows are left out":  {"checks; without: ^20 seeds", table + "| 100 seeds: check | 72 | ns |  |  |\n", ""},
		"a scenario did not run":  {"idle drift", "old\n", ""},
		"there is no such one":    {"nothing", "old\n", `there is no scenario "nothing"`},
		"the expression is wrong": {"idle; without: (", "old\n", "error parsing regexp"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.updated("before\n<!-- bench: "+test.marker+" -->\nold\n<!-- /bench -->\nafter\n", run)
			if test.problem == "" && err != nil || test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("error %v, want %q", err, test.problem)
			}
			if diff := cmp.Diff("before\n<!-- bench: "+test.marker+" -->\n"+test.want+"<!-- /bench -->\nafter\n", got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
