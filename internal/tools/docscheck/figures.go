package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// measurements is the page that has the figures; others repeat some of them, rounded.
const measurements = "docs/internals/performance.md"

// copied are figures that a page repeats: its text, with {} for each number, and for each number an expression whose group finds it among the
// measurements, once.
type copied struct {
	page, text string
	from       []string
}

// row is an expression for the row of a table that follows others: the text of the first cell of each, and the part of the last one's rest that
// has the number. Rows between them may be left out.
func row(cells ...string) string {
	number := cells[len(cells)-1]
	expression := `(?m)`
	for i, cell := range cells[:len(cells)-1] {
		if i > 0 {
			expression += `[^\n]*\n(?:\| … [^\n]*\n)*?`
		}
		expression += `^\| ` + regexp.QuoteMeta(cell) + ` \|`
	}
	return expression + number
}

// value is the number of a row, and that of its baseline.
const (
	value     = ` ([\d.,]+) \|`
	reference = `[^\n]* the reference's (\d[\d.]*)`
)

const (
	edited = "ConfigMap (no generation) edited, repaired, p50"
	many   = "1000 ManagedResources × 4 objects, all conditions"
	agents = "1,000 Nodes, 30,000 Pods: ready and settled"
	sizing = "docs/operations/sizing.md"
)

var copies = []copied{
	{"README.md", "| an edited object is repaired: median, 95 % | {} ms, {} ms | {} s, {} s (sync period 1 min) |", []string{
		row(edited, value), row(edited, `[^\n]* p95 ([\d.]+) ms \(`), row(edited, `[^\n]*: p50 (\d+) s`), row(edited, `[^\n]* p95 (\d+) s;`)}},
	{"README.md", "| requests a minute while nothing changes, 200 ManagedResources | {} | {} |", []string{
		row("steady state, sync period 1 min: requests", value), row("steady state, sync period 1 min: requests", `[^\n]* the reference: (\d+)`)}},
	{"README.md", "| 2000 ConfigMaps of one ManagedResource applied | {} s | {} s |", []string{
		row("one ManagedResource × 2000 ConfigMaps", value), row("one ManagedResource × 2000 ConfigMaps", reference)}},
	{"README.md", "| memory of an idle resource-manager | {} MiB | {} MiB |", []string{
		row("resident memory, idle, empty clusters", value), row("resident memory, idle, empty clusters", reference)}},
	{"README.md", "| admission-controller with 10,000 shoots: ready after | {} s | {} s |", []string{
		row("33300 objects: start to ready", value), row("33300 objects: start to ready", reference)}},
	{"README.md", "| … memory, settled | {} MiB | {} MiB |", []string{
		row("33300 objects: memory, settled", value), row("33300 objects: memory, settled", reference)}},
	{"README.md", "| … decisions a second, one connection: allowed Secret; refused CloudProfile | {}; {} | {}; {} |", []string{
		row("decisions, 1 connections: Secret of a Shoot, allowed", value), row("decisions, 1 connections: CloudProfile, refused", value),
		row("decisions, 1 connections: Secret of a Shoot, allowed", reference), row("decisions, 1 connections: CloudProfile, refused", reference)}},
	{"README.md", "| … time from a write of a Shoot until decisions change, median | {} ms | {} ms |", []string{
		row("write of a Shoot until the decision flips, p50", value), row("write of a Shoot until the decision flips, p50", reference)}},

	{sizing, "| nothing to do | {} MiB | {} to {} s a minute |", []string{
		row("resident memory, idle, empty clusters", value), `steady state, ([\d.]+) to [\d.]+ s a minute`, `steady state, [\d.]+ to ([\d.]+) s a minute`}},
	{sizing, "| 1000 ManagedResources × 4 objects | {} MiB | {} s to apply all of them, {} s after a restart |", []string{
		row(many, "… resident memory then", value), row(many, `[^\n]*, ([\d.]+) s CPU time`),
		row(many, "… after a restart: from ready until all objects are compared, default limits", `[^\n]* ([\d.]+) s CPU time`)}},
	{sizing, "| 80,000 unrelated Secrets in the source | {} MiB | no more |", []string{
		row("start to ready, 80,000 unrelated Secrets in the source", "… resident memory then", value)}},
	{sizing, "| 100 seeds, 10,000 shoots, 33,300 objects | {} MiB | {} MiB | {} MiB | {} s |", []string{
		row("33300 objects: memory, settled", value), `(?s)\n\| decisions, .*?\n\| memory after the decisions \| ([\d.]+) \|`,
		row("33300 objects: memory, peak of the start", value), row("33300 objects: start to ready", value)}},
	{sizing, "| nothing to do | {} MiB |\n", []string{row("memory, idle", value)}},
	{sizing, "| a shoot of 1,000 Nodes and 30,000 Pods | {} MiB, {} at the peak |", []string{row(agents, "… memory", value), row(agents, "… memory", `[^\n]* peak (\d+)`)}},
	{sizing, "| 200 small shoots in one process | {} MiB, {} KiB for each |", []string{
		row("200 shoots in one process: memory", value), row("200 shoots in one process: memory", "… a shoot", value)}},
}

// tables are those whose rows have figures, by their first line: each row must be one of the copies.
var tables = map[string]string{"README.md": "| measured |", sizing: "| "}

// checkFigures holds that pages repeat what was measured.
func checkFigures(root string) []error {
	measured, err := os.ReadFile(filepath.Join(root, measurements))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return []error{err}
	}
	var problems []error
	covered := map[string]string{}
	for _, c := range copies {
		content, err := os.ReadFile(filepath.Join(root, c.page))
		if err != nil {
			return append(problems, err)
		}
		if _, read := covered[c.page]; !read {
			covered[c.page] = string(content)
		}
		match, err := c.check(string(content), string(measured))
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", c.page, err))
		}
		covered[c.page] = strings.Replace(covered[c.page], strings.TrimSuffix(match, "\n"), "", 1)
	}
	for page, first := range tables {
		problems = append(problems, uncovered(page, first, covered[page])...)
	}
	return problems
}

// check compares the figures, and returns the text of the page that has them.
func (c copied) check(page, measured string) (string, error) {
	match, err := once(strings.ReplaceAll(regexp.QuoteMeta(c.text), `\{\}`, `([\d.,]+)`), page)
	if err != nil {
		return "", fmt.Errorf("the text %q: %w", c.text, err)
	}
	var problems []error
	for i, expression := range c.from {
		source, err := once(expression, measured)
		if err != nil {
			problems = append(problems, fmt.Errorf("%q: %s: %w", c.text, expression, err))
		} else if !rounds(source[1], match[i+1]) {
			problems = append(problems, fmt.Errorf("%q has %s where %s was measured", match[0], match[i+1], source[1]))
		}
	}
	return match[0], errors.Join(problems...)
}

func once(expression, text string) ([]string, error) {
	all := regexp.MustCompile(expression).FindAllStringSubmatch(text, 2)
	if len(all) != 1 {
		return nil, fmt.Errorf("it is there %d times, want once", len(all))
	}
	return all[0], nil
}

// rounds reports whether a number is another one as it was rounded: to its last decimal, or, from a thousand on, to its last figure that is no zero.
func rounds(measured, repeated string) bool {
	measured, repeated = strings.ReplaceAll(measured, ",", ""), strings.ReplaceAll(repeated, ",", "")
	exact, err := strconv.ParseFloat(measured, 64)
	rounded, err2 := strconv.ParseFloat(repeated, 64)
	if errors.Join(err, err2) != nil {
		return false
	}
	unit := 1.0
	if _, decimals, found := strings.Cut(repeated, "."); found {
		unit = math.Pow10(-len(decimals))
	} else if rounded >= 1000 {
		unit = math.Pow10(len(repeated) - len(strings.TrimRight(repeated, "0")))
	}
	return math.Abs(math.Round(exact/unit)*unit-rounded) < unit/1000
}

// uncovered are the rows of tables that still have figures when those that were compared are taken out.
func uncovered(page, first, content string) []error {
	var problems []error
	inside := false
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		if !inside {
			inside = strings.HasPrefix(line, first)
			continue
		}
		inside = strings.HasPrefix(line, "|") || line == "" && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|")
		if inside && regexp.MustCompile(`\d`).MatchString(line) {
			problems = append(problems, fmt.Errorf("%s: nothing compares the row %q with what was measured", page, line))
		}
	}
	return problems
}
