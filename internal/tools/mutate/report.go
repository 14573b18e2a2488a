package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// acceptedVerdict counts survivors that accepted.txt explains.
const acceptedVerdict = undecided + 1

// tally counts defects by result.
type tally [acceptedVerdict + 1]int

func (t *tally) add(o tally) {
	for i, n := range o {
		t[i] += n
	}
}

// all counts the defects that were decided.
func (t tally) all() int { return t[killed] + t[survived] + t[unreached] + t[acceptedVerdict] }

// rate returns the percentage of defects that survive without an explanation, whether or not a test reaches them.
func (t tally) rate() float64 {
	if t.all() == 0 {
		return 0
	}
	return 100 * float64(t[survived]+t[unreached]) / float64(t.all())
}

func (t tally) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %.1f |", name, t.all(), t[killed], t[survived], t[unreached], t[acceptedVerdict], t.rate())
}

// report prints a table, the survivors, and how many defects were not tested, and returns the sum.
func report(out io.Writer, results []result, isOver bool) (tally, error) {
	lines := []string{"| package | defects | killed | survived | not reached | accepted | % |", "|---|---|---|---|---|---|---|"}
	var survivors []string
	var sum tally
	for _, r := range results {
		if r.tally.all() > 0 {
			lines = append(lines, r.tally.row(r.name))
		}
		sum.add(r.tally)
		survivors = append(survivors, r.survivors...)
	}
	lines = append(append(lines, sum.row("all"), ""), survivors...)
	if isOver || sum[undecided] > 0 {
		lines = append(lines, fmt.Sprintf("the time was over before all were judged: %d are undecided", sum[undecided]))
	}
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return sum, err
}

func tallyOf(mutants []mutant, verdicts []verdict, accepted map[string]bool) (tally, []string) {
	var t tally
	var survivors []string
	for i, v := range verdicts {
		if (v == survived || v == unreached) && mutants[i].isAccepted(accepted) {
			v = acceptedVerdict
		}
		t[v]++
		switch v {
		case survived:
			survivors = append(survivors, mutants[i].String())
		case unreached:
			survivors = append(survivors, mutants[i].String()+" (no test reaches it)")
		}
	}
	return t, survivors
}

// isAccepted reports whether a list names the defect, its function or its file.
func (m mutant) isAccepted(accepted map[string]bool) bool {
	return accepted[m.key()] || accepted[m.file+" "+m.function+" *"] || accepted[m.file+" *"]
}

// acceptedSurvivors reads "file function defect text" keys, or "file function *" and "file *" for each defect of a function or a file, one a line; a
// line that begins with # gives the reason of those after it.
func acceptedSurvivors(text string) map[string]bool {
	keys := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys[line] = true
		}
	}
	return keys
}

// ticker lets one caller at a time through.
func ticker(f func()) func() {
	var lock sync.Mutex
	return func() {
		lock.Lock()
		defer lock.Unlock()
		f()
	}
}
