package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// run describes what measured.
type run struct {
	Date, Commit, Machine string
	// Kubernetes is empty for scenarios without an API server, Reference in runs without one.
	Kubernetes, Reference string
}

// turn has the figures of one turn of a scenario.
type turn struct {
	Scenario string
	Run      run
	Rows     []*row
	// Failed is the reason why the reference could not be measured to the end.
	Failed string
}

// row is one figure; several turns, or several measurements in one turn, give it several values.
type row struct {
	What, Unit, Target string
	Ours, Reference    []float64
}

// add adds a value of the side that is measured.
func (b *bench) add(what string, value float64, unit, target string) {
	r := rowOf(&b.current.Rows, what, unit, target)
	if b.side.reference {
		r.Reference = append(r.Reference, value)
	} else {
		r.Ours = append(r.Ours, value)
	}
}

func rowOf(rows *[]*row, what, unit, target string) *row {
	for _, r := range *rows {
		if r.What == what {
			return r
		}
	}
	r := &row{What: what, Unit: unit, Target: target}
	*rows = append(*rows, r)
	return r
}

var gitVersion = regexp.MustCompile(`GitVersion:"([^"]*)".*GitCommit:"(\w{8})`)

// describe returns the description of a turn that begins now.
func (b *bench) describe(ctx context.Context) run {
	r := run{Date: time.Now().UTC().Format(time.DateOnly), Commit: "unknown", Machine: machine()}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude", "*").Output(); err == nil {
		r.Commit = strings.TrimSpace(string(out))
	}
	if len(b.sides) > 1 {
		r.Reference = "the reference"
		out, err := exec.CommandContext(ctx, b.sides[1].binaries["resource-manager"], "--version=raw").Output()
		if found := gitVersion.FindSubmatch(out); err == nil && found != nil {
			r.Reference = fmt.Sprintf("Gardener %s (%s)", found[1], found[2])
		}
	}
	return r
}

// machine names the processor, as Linux does, and the number of its cores.
func machine() string {
	model := runtime.GOARCH
	if content, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range bytes.Lines(content) {
			if key, value, found := strings.Cut(string(line), ":"); found && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), model)
}

func (b *bench) file(scenario string, number int) string {
	return filepath.Join(b.results, fmt.Sprintf("%s-%d.json", scenario, number+1))
}

// save adds the current turn to the results, and to their folder if there is one.
func (b *bench) save(number int) error {
	b.finished = append(b.finished, b.current)
	if b.results == "" {
		return nil
	}
	content, err := json.MarshalIndent(b.current, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(b.results, 0o755), os.WriteFile(b.file(b.current.Scenario, number), content, 0o600))
}

// load adds a turn of the folder to the results, and reports whether the folder has it.
func (b *bench) load(scenario string, number int) (bool, error) {
	if b.results == "" {
		return false, nil
	}
	content, err := os.ReadFile(b.file(scenario, number))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	saved := &turn{}
	b.finished = append(b.finished, saved)
	return true, json.Unmarshal(content, saved)
}

// table returns the rows of scenarios, with the values of all turns, and the run that measured them. Turns of two runs make no table.
func (b *bench) table(names []string) ([]*row, run, error) {
	var rows []*row
	var by run
	for _, name := range names {
		first := true
		for _, t := range b.finished {
			if t.Scenario != name {
				continue
			}
			first = false
			for _, text := range []struct{ all, one *string }{
				{&by.Commit, &t.Run.Commit}, {&by.Machine, &t.Run.Machine}, {&by.Kubernetes, &t.Run.Kubernetes}, {&by.Reference, &t.Run.Reference},
			} {
				if *text.all != "" && *text.one != "" && *text.all != *text.one {
					return nil, run{}, fmt.Errorf("%s: %q and %q are figures of two runs", name, *text.all, *text.one)
				}
				*text.all = max(*text.all, *text.one)
			}
			by.Date = max(by.Date, t.Run.Date)
			for _, r := range t.Rows {
				all := rowOf(&rows, r.What, r.Unit, r.Target)
				all.Ours, all.Reference = append(all.Ours, r.Ours...), append(all.Reference, r.Reference...)
			}
			if t.Failed != "" {
				rowOf(&rows, name+": the reference fails", "", t.Failed)
			}
		}
		if first {
			return nil, run{}, nil
		}
	}
	return rows, by, nil
}

// print prints what has been measured, scenario by scenario.
func (b *bench) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 1, ' ', 0)
	for _, s := range scenarios {
		rows, by, err := b.table([]string{s.name})
		if err != nil {
			_, _ = fmt.Fprintln(w, err)
		}
		if len(rows) > 0 {
			_, _ = fmt.Fprintf(w, "\n%s: %s\n\n", s.name, by)
			_, _ = io.WriteString(w, strings.ReplaceAll(markdown(rows, by.Reference), " |", "\t|"))
		}
	}
	_ = w.Flush()
}

func (r run) String() string {
	on := r.Machine
	if r.Kubernetes != "" {
		on = "Kubernetes " + r.Kubernetes + ", " + on
	}
	return fmt.Sprintf("measured on %s at commit %s (%s)", r.Date, r.Commit, on)
}

func markdown(rows []*row, reference string) string {
	out := "| what | unit | median | min … max | target |\n|---|---|---|---|---|\n"
	if reference != "" {
		out = "| what | unit | Espalier | min … max | " + reference + " | min … max | Espalier ÷ reference | target |\n|---|---|---|---|---|---|---|---|\n"
	}
	for _, r := range rows {
		out += fmt.Sprintf("| %s | %s | %s | %s |", r.What, r.Unit, figure(median(r.Ours)), spread(r.Ours))
		if reference != "" {
			ratio := ""
			if theirs := median(r.Reference); len(r.Ours) > 0 && theirs > 0 {
				ratio = fmt.Sprintf("%.2f", median(r.Ours)/theirs)
			}
			out += fmt.Sprintf(" %s | %s | %s |", figure(median(r.Reference)), spread(r.Reference), ratio)
		}
		out += " " + r.Target + " |\n"
	}
	return out
}

// brief is a table of the medians alone.
func brief(rows []*row, reference string) string {
	out, under := "| measured | Espalier |", "|---|---|"
	if reference != "" {
		out, under = out+" "+reference+" |", under+"---|"
	}
	out += "\n" + under + "\n"
	for _, r := range rows {
		out += fmt.Sprintf("| %s | %s |", r.What, withUnit(median(r.Ours), r.Unit))
		if reference != "" {
			out += " " + withUnit(median(r.Reference), r.Unit) + " |"
		}
		out += "\n"
	}
	return out
}

func withUnit(value float64, unit string) string {
	if unit == "ms" && value >= 1000 {
		value, unit = value/1000, "s"
	}
	return strings.TrimSpace(figure(value) + " " + unit)
}

// A block of a page has the rows of some scenarios. A brief one has only medians of the rows whose text the expression matches; one of ours alone has
// no column of the reference:
//
//	<!-- bench: idle many -->
//	…
//	<!-- /bench -->
//
//	<!-- bench: many gatekeeper; brief: requests a minute.*|memory, settled -->
//	<!-- bench: landscape; ours: .*memory -->
var block = regexp.MustCompile(`(?s)(<!-- bench: ([a-z ]+?)(?:; (brief|ours): ([^\n]*?))? -->\n).*?(<!-- /bench -->)`)

// updatePage replaces the blocks of a page whose scenarios are among the results.
func (b *bench) updatePage(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	updated, err := b.updated(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(updated), 0o600)
}

func (b *bench) updated(page string) (string, error) {
	var problems []error
	page = block.ReplaceAllStringFunc(page, func(whole string) string {
		parts := block.FindStringSubmatch(whole)
		names := strings.Fields(parts[2])
		for _, name := range names {
			if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
				problems = append(problems, fmt.Errorf("there is no scenario %q", name))
			}
		}
		rows, by, err := b.table(names)
		wanted, err2 := regexp.Compile("^(?:" + parts[4] + ")$")
		if err := errors.Join(err, err2); err != nil || rows == nil {
			problems = append(problems, err)
			return whole
		}
		if parts[3] == "" {
			return parts[1] + strings.ToUpper(by.String()[:1]) + by.String()[1:] + ".\n\n" + markdown(rows, by.Reference) + parts[5]
		}
		rows = slices.DeleteFunc(rows, func(r *row) bool { return !wanted.MatchString(r.What) })
		if parts[3] == "ours" {
			by.Reference = ""
		}
		return parts[1] + brief(rows, by.Reference) + parts[5]
	})
	return page, errors.Join(problems...)
}

// figure prints a number with about three digits.
func figure(value float64) string {
	format := "%.0f"
	switch {
	case math.IsNaN(value):
		return ""
	case value == 0:
		return "0"
	case value < 10:
		format = "%.2f"
	case value < 100:
		format = "%.1f"
	}
	return fmt.Sprintf(format, value)
}

func spread(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return figure(slices.Min(values)) + " … " + figure(slices.Max(values))
}
