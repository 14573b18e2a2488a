package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
)

// row is one of a table of the benchmarks.
type row struct {
	What, Value, Unit, Spread string
}

func readTable(file string) ([]row, error) {
	content, err := os.ReadFile(file)
	if err != nil || len(content) == 0 {
		return nil, err
	}
	var rows []row
	return rows, json.Unmarshal(content, &rows)
}

// pair are the same figure of both sides; one of them may be missing.
type pair struct{ ours, theirs row }

// merged returns the figures in the order of ours, and after them what only the reference has. Figures with the same words follow one another in both
// tables, as those that begin with dots do.
func merged(ours, theirs []row) []pair {
	var pairs []pair
	taken := make([]bool, len(theirs))
	next := 0
	for _, own := range ours {
		p := pair{ours: own}
		for _, i := range fromTo(next, len(theirs)) {
			if !taken[i] && theirs[i].What == own.What {
				p.theirs, taken[i], next = theirs[i], true, i+1
				break
			}
		}
		pairs = append(pairs, p)
	}
	for i, other := range theirs {
		if !taken[i] {
			pairs = append(pairs, pair{theirs: other})
		}
	}
	return pairs
}

// fromTo are the numbers below n, those from first on before the others.
func fromTo(first, n int) []int {
	all := make([]int, 0, n)
	for i := range n {
		all = append(all, (first+i)%n)
	}
	return all
}

// ratio is that of ours to the reference's; "" if there is none.
func (p pair) ratio() string {
	own, err := strconv.ParseFloat(p.ours.Value, 64)
	if err != nil {
		return ""
	}
	other, err := strconv.ParseFloat(p.theirs.Value, 64)
	if err != nil || other == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", own/other)
}

func printTable(out io.Writer, ours, theirs []row) error {
	w := tabwriter.NewWriter(out, 0, 4, 1, ' ', 0)
	_, _ = fmt.Fprintln(w, "| what\t| unit\t| ours\t| spread\t| reference\t| spread\t| ours ÷ reference\t|")
	_, _ = fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, p := range merged(ours, theirs) {
		what, unit := p.ours.What, p.ours.Unit
		if what == "" {
			what, unit = p.theirs.What, p.theirs.Unit
		}
		_, _ = fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", what, unit, p.ours.Value, p.ours.Spread, p.theirs.Value, p.theirs.Spread, p.ratio())
	}
	return w.Flush()
}
