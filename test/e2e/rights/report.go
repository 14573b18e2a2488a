package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// reviewed is the page that says which rights no test uses, and why.
//
//go:embed unused.md
var reviewed string

// explanation says why rights are not used: each cell names some, separated by commas.
type explanation struct {
	executables, features, clusters, verbs, resources []string

	why string
}

func (e *explanation) explains(r right) bool {
	return slices.Contains(e.executables, r.executable) && slices.Contains(e.features, r.feature) && slices.Contains(e.clusters, r.cluster) &&
		slices.Contains(e.verbs, r.verb) && slices.Contains(e.resources, r.resource)
}

func (e *explanation) String() string {
	words := make([]string, 0, 5)
	for _, cell := range [][]string{e.executables, e.features, e.clusters, e.verbs, e.resources} {
		words = append(words, strings.Join(cell, ", "))
	}
	return strings.Join(words, " | ")
}

// explanations reads the rows of the page's table: executable, feature, cluster, verbs, resources, why.
func explanations(page string) ([]explanation, error) {
	var all []explanation
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "executable" {
			continue
		}
		words := func(cell string) []string {
			return strings.FieldsFunc(cell, func(r rune) bool { return r == ',' || r == ' ' })
		}
		e := explanation{words(cells[1]), []string{strings.TrimSpace(cells[2])}, words(cells[3]), words(cells[4]), words(cells[5]), strings.TrimSpace(cells[6])}
		if e.why == "" {
			return nil, fmt.Errorf("it is not said why: %s", e.String())
		}
		all = append(all, e)
	}
	return all, nil
}

// report reports the rights that are not used, a line each. It is an error if there is an explanation of a right that there is not; one that
// nothing explains is none, as it may depend on moments whether a request is sent.
func report(rights []right, used map[right]bool, explained []explanation) (string, error) {
	var out strings.Builder
	var unexplained []string
	known, needed, there := 0, map[int]bool{}, map[int]bool{}
	for _, r := range rights {
		i := slices.IndexFunc(explained, func(e explanation) bool { return e.explains(r) })
		there[i] = true
		switch {
		case used[r]:
		case i >= 0:
			known++
			needed[i] = true
		default:
			unexplained = append(unexplained, r.String())
		}
	}
	fmt.Fprintf(&out, "%d rights of features, %d used by requests of the tests, %d explained in test/e2e/rights/unused.md\n", len(rights), len(rights)-known-len(unexplained), known)
	var err error
	for i := range explained {
		switch {
		case !there[i]:
			err = errors.Join(err, fmt.Errorf("test/e2e/rights/unused.md explains rights that there are not: %s", explained[i].String()))
		case !needed[i]:
			fmt.Fprintf(&out, "explained in test/e2e/rights/unused.md, and all used this time: %s\n", explained[i].String())
		}
	}
	for _, each := range unexplained {
		fmt.Fprintf(&out, "NOT USED by any test: %s; take it away, test what needs it, or say why in test/e2e/rights/unused.md\n", each)
	}
	return out.String(), err
}

// distinct are rights once each, sorted.
func distinct(rights ...[]right) []right {
	set := map[right]bool{}
	for _, few := range rights {
		for _, each := range few {
			set[each] = true
		}
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b right) int { return strings.Compare(a.String(), b.String()) })
}
