package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// step is a function on a way through the engine, as docs/internals/engine.md names it; TestNamesInEngineDocument holds these names to the code.
type step struct{ file, function string }

var (
	item     = regexp.MustCompile(`^\d+\. `)
	stepName = regexp.MustCompile("`([a-z]+/[a-z_/]+\\.go)` `(\\w+)`")
)

// way returns the functions that the list below a heading of a page names, in order.
func way(page, heading string) (steps []step) {
	_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if item.MatchString(line) {
			for _, name := range stepName.FindAllStringSubmatch(line, -1) {
				steps = append(steps, step{name[1], name[2]})
			}
		}
	}
	return steps
}

// between returns the part of a way from a function to another one, both included; nil if one of them is missing.
func between(steps []step, first, last step) []step {
	from, to := slices.Index(steps, first), slices.Index(steps, last)
	if from < 0 || to < from {
		return nil
	}
	return steps[from : to+1]
}

// returns counts how often a way returns to a folder that it has left.
func returns(steps []step) (count int) {
	visited, last := map[string]bool{}, ""
	for _, s := range steps {
		folder := path.Dir(s.file)
		if folder != last && visited[folder] {
			count++
		}
		visited[folder], last = true, folder
	}
	return count
}
