package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A block of a page has the rows of some scenarios, without those that match an expression:
//
//	<!-- bench: checks gatekeeper; without: ^20 seeds -->
//	…
//	<!-- /bench -->
var block = regexp.MustCompile(`(?s)(<!-- bench: ([a-z ]+?)(?:; without: ([^\n]*?))? -->\n).*?(<!-- /bench -->)`)

// measured says when, of which commit and on which machine figures were measured.
type measured struct{ date, commit, machine string }

// now is the run of this process.
func now() measured {
	commit := "an unknown commit"
	if out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output(); err == nil {
		commit = "commit " + strings.TrimSpace(string(out))
	}
	return measured{date: time.Now().UTC().Format(time.DateOnly), commit: commit, machine: machine()}
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

// updatePage replaces the blocks of a page whose scenarios have all run.
func (b *bench) updatePage(file string, run measured) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	updated, err := b.updated(string(content), run)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(updated), 0o600)
}

func (b *bench) updated(page string, run measured) (string, error) {
	var problems []error
	page = block.ReplaceAllStringFunc(page, func(whole string) string {
		parts := block.FindStringSubmatch(whole)
		without, err := regexp.Compile(parts[3])
		if err != nil {
			problems = append(problems, err)
			return whole
		}
		wanted := strings.Fields(parts[2])
		for _, name := range wanted {
			if !slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }) {
				problems = append(problems, fmt.Errorf("there is no scenario %q", name))
			}
			if !slices.Contains(b.finished, name) {
				return whole
			}
		}
		var out strings.Builder
		fmt.Fprintf(&out, "%sMeasured on %s at %s (%s).\n\n", parts[1], run.date, run.commit, run.machine)
		out.WriteString("| what | value | unit | spread | compared |\n|---|---|---|---|---|\n")
		for _, r := range b.rows {
			if slices.Contains(wanted, r.scenario) && (parts[3] == "" || !without.MatchString(r.what)) {
				fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.what, r.value, r.unit, r.spread, r.compared)
			}
		}
		return out.String() + parts[4]
	})
	return page, errors.Join(problems...)
}
