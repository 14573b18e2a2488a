// shape prints how much the engine of ManagedResources consists of, with the goal beside each figure.
//
//	shape [-words] <root of the repository>
//
// With -words it prints each identifier that has a word of our own where the field has a term, and fails if there is one.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	words := flag.Bool("words", false, "print the identifiers that have a word of our own")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: shape [-words] <root of the repository>")
		os.Exit(2)
	}
	house, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *words {
		found := house.ownWords()
		for _, word := range found {
			fmt.Fprintln(os.Stderr, word)
		}
		if len(found) > 0 {
			os.Exit(1)
		}
		return
	}
	if err := house.print(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// engine is the folder of the engine, core are its rooms that a changed Secret passes.
const engine = "internal/managedresource"

var core = []string{"apply", "controller", "lifecycle", "meta", "objects", "ownership", "resource", "source", "target"}

// row is a figure and its goal.
type row struct {
	what      string
	now, goal int
}

func (h house) rows() []row {
	var inCore []file
	for _, room := range core {
		inCore = append(inCore, h.below(engine+"/"+room)...)
	}
	below := h.below(engine)
	return []row{
		{"exported methods of the table of objects", methods(h.below(engine + "/objects")), 16},
		{"lines that convert one key into another", conversions(below), 0},
		{"lines of code of the engine core", sum(inCore, codeLines), 8500},
		{"lines of code below " + engine, sum(below, codeLines), 17500},
		{"mutexes in structs", sum(below, fieldsOf(isMutex)), 14},
		{"maps in structs", sum(below, fieldsOf(isMap)), 60},
		{"lines wider than 120 columns", sum(below, wideLines), 50},
		{"rooms that read a watch", h.watchers(), 1},
		{"identifiers with a word of our own", len(h.ownWords()), 0},
	}
}

func (h house) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "now\tgoal\t  what") // The flush returns the error.
	for _, r := range h.rows() {
		_, _ = fmt.Fprintf(table, "%d\t%d\t  %s\n", r.now, r.goal, r.what)
	}
	return table.Flush()
}
