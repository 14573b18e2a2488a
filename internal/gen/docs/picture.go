package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// relationDoc returns doc.go of package relation: a description of the package with a picture of the edges, generated
// from the table.
func relationDoc() string {
	var out strings.Builder
	out.WriteString(`// Written by internal/gen/docs from the table of edges; make generate writes it anew.

// Package relation defines the dependencies between objects of the garden: one row for each edge of the graph, in one
// table (Watches), the source of the watches, the labels of metrics, docs/reference/graph.md and the picture below.
//
// A row is a pure function from an object of a watched kind to edges. The few rows that depend on another object, too,
// name it in Needs; State keeps the fields that they need of it and computes the rows again when these change.
//
// The picture reads from the bottom to the top: the kinds below a kind have edges to it, by the rows in brackets. A
// seed's clients may reach every object that leads to their Seed. Each kind's own lines stand once, where it is
// nearest to the Seed; elsewhere it ends in dots.
//
`)
	for _, line := range picture(relation.Watches) {
		out.WriteString("//\t" + line + "\n")
	}
	out.WriteString("package relation\n")
	return out.String()
}

// arrow has all edges of a table from one kind to another.
type arrow struct {
	from graph.Kind
	rows []string
}

// picture draws the kinds of a table as a tree whose root is the Seed.
func picture(table relation.Table) []string {
	into := map[graph.Kind][]arrow{}
	for _, w := range table {
		for _, r := range w.Rows {
			name := r.ID
			if r.Class == graph.Direct {
				name += " for requests for it alone"
			}
			for _, from := range r.From {
				for _, to := range r.To {
					into[to] = withArrow(into[to], from, name)
				}
			}
		}
	}
	lines := []string{relation.Schema.Names[relation.Seed]}
	drawArrows(into, nearest(into), relation.Seed, "", &lines)
	return lines
}

func withArrow(arrows []arrow, from graph.Kind, row string) []arrow {
	for i := range arrows {
		if arrows[i].from == from {
			if !slices.Contains(arrows[i].rows, row) {
				arrows[i].rows = append(arrows[i].rows, row)
			}
			return arrows
		}
	}
	return append(arrows, arrow{from, []string{row}})
}

// nearest returns, for each kind, the kind below which its own lines are drawn: the one that is nearest to the Seed.
func nearest(into map[graph.Kind][]arrow) map[graph.Kind]graph.Kind {
	below, next := map[graph.Kind]graph.Kind{}, []graph.Kind{relation.Seed}
	for len(next) > 0 {
		to := next[0]
		next = next[1:]
		for _, a := range into[to] {
			if _, drawn := below[a.from]; !drawn && a.from != relation.Seed {
				below[a.from] = to
				next = append(next, a.from)
			}
		}
	}
	return below
}

// drawArrows appends a line for each arrow to a kind. Arrows with further lines below them come last.
func drawArrows(into map[graph.Kind][]arrow, below map[graph.Kind]graph.Kind, to graph.Kind, indent string, lines *[]string) {
	goesOn := func(a arrow) bool { return len(into[a.from]) > 0 && a.from != relation.Seed && below[a.from] == to }
	arrows := slices.Clone(into[to])
	slices.SortStableFunc(arrows, func(a, b arrow) int {
		if x, y := goesOn(a), goesOn(b); x != y {
			if y {
				return -1
			}
			return 1
		}
		return strings.Compare(relation.Schema.Names[a.from], relation.Schema.Names[b.from])
	})
	for i, a := range arrows {
		branch, rest := "├─ ", "│  "
		if i == len(arrows)-1 {
			branch, rest = "└─ ", "   "
		}
		dots := ""
		if len(into[a.from]) > 0 && !goesOn(a) {
			dots = " …"
		}
		*lines = append(*lines, fmt.Sprintf("%s%s%s [%s]%s", indent, branch, relation.Schema.Names[a.from], strings.Join(a.rows, ", "), dots))
		if goesOn(a) {
			drawArrows(into, below, a.from, indent+rest, lines)
		}
	}
}
