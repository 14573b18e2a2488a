package main

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

//go:embed suites.txt
var suitesText string

// Marks in the page before and after the table.
const (
	pageBegin = "<!-- begin: make mutate ALL=1 -->\n"
	pageEnd   = "<!-- end -->"
	pageHead  = "| package | defects | judged | killed | survived | accepted | % | judged on | also tested by |\n|---|---|---|---|---|---|---|---|---|\n"
	// sumOf begins the last row, which is computed from the others.
	sumOf = "| **all** |"
)

// suitesOf reads "<package>: <suites>" lines: packages that talk to API servers, to files or to the terminal, and the suites that judge them
// as processes.
func suitesOf(text string) map[string]string {
	suites := map[string]string{}
	for line := range strings.Lines(text) {
		if name, list, found := strings.Cut(strings.TrimSpace(line), ": "); found && !strings.HasPrefix(name, "#") {
			suites[name] = list
		}
	}
	return suites
}

func pageRow(r result, suites map[string]string, day time.Time) string {
	t := r.tally
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %.1f | %s |%s |\n", r.name, r.defects, t.all(), t[killed], t[survived]+t[unreached], t[acceptedVerdict],
		t.rate(), day.Format(time.DateOnly), strings.TrimRight(" "+suites[r.name], " "))
}

// updatePage replaces the rows of packages in a page's table; it keeps the rows of others.
func updatePage(path string, results []result, suites map[string]string, day time.Time) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), pageBegin)
	table, after, ends := strings.Cut(rest, pageEnd)
	if !found || !ends {
		return fmt.Errorf("%s does not mark where the table is", path)
	}
	rows := map[string]string{}
	for line := range strings.Lines(table) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.Contains(name, "/") {
			rows[name] = withSuites(line, suites[name])
		}
	}
	for _, r := range results {
		if r.tally.all() > 0 {
			rows[r.name] = pageRow(r, suites, day)
		}
	}
	text, sum := strings.Builder{}, result{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString(rows[name])
		sum.addRow(rows[name])
	}
	total := fmt.Sprintf("%s %d | %d | %d | %d | %d | %.1f | | |\n", sumOf, sum.defects, sum.tally.all(), sum.tally[killed], sum.tally[survived],
		sum.tally[acceptedVerdict], sum.tally.rate())
	return os.WriteFile(path, []byte(before+pageBegin+"\n"+pageHead+text.String()+total+"\n"+pageEnd+after), 0o644) //nolint:gosec // a document
}

// withSuites replaces the last cell of a row.
func withSuites(row, suites string) string {
	cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(row), "|"), "|")
	cells[len(cells)-1] = strings.TrimRight(" "+suites, " ") + " "
	return strings.Join(cells, "|") + "|\n"
}

// addRow adds the figures of a row of the page.
func (r *result) addRow(row string) {
	cells := strings.Split(row, "|")
	if len(cells) < 7 {
		return
	}
	figures := [5]int{}
	for i := range figures {
		fmt.Sscan(cells[i+2], &figures[i]) //nolint:errcheck // a cell that is no number counts for nothing
	}
	r.defects += figures[0]
	r.tally[killed] += figures[2]
	r.tally[survived] += figures[3]
	r.tally[acceptedVerdict] += figures[4]
}
