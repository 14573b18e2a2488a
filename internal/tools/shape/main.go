// shape prints figures about the engine of ManagedResources, each with its goal.
//
//	shape [-words | -budget <file> [-lower]] <root of the repository>
//
// With -words it prints each identifier that has a word of our own although the field has a term, and fails if there
// is one. With -budget it fails if a folder has more lines of code than the file allows; -lower writes budgets of 5 %
// more than the present lines.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	words := flag.Bool("words", false, "print the identifiers that have a word of our own")
	budget := flag.String("budget", "", "`file` of the lines of code that each folder may have")
	lower := flag.Bool("lower", false, "lower the budgets to 5 % more than there is")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: shape [-words | -budget <file> [-lower]] <root of the repository>")
		os.Exit(2)
	}
	if err := run(os.Stdout, flag.Arg(0), *words, *budget, *lower); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, root string, words bool, budget string, lower bool) error {
	codeBase, err := read(root)
	switch {
	case err != nil:
		return err
	case words:
		if found := codeBase.ownWords(); len(found) > 0 {
			return errors.New(strings.Join(found, "\n"))
		}
		return nil
	case budget == "":
		page, err := os.ReadFile(filepath.Join(root, "docs", "internals", "engine.md"))
		if err != nil {
			return err
		}
		tests, err := testLines(root)
		if err != nil {
			return err
		}
		return codeBase.print(out, string(page), tests)
	}
	allowed, err := readBudgets(budget)
	if err != nil {
		return err
	}
	folders := codeBase.folders()
	if lower {
		return allowed.lower(folders, budget)
	}
	_, _ = fmt.Fprintf(out, "lines of code of the product: %d of %d\n", folders.total(), allowed.total())
	return allowed.check(folders)
}

// engine is the folder of the engine, and core its packages between a changed Secret and the target.
const engine = "internal/managedresource"

var core = []string{"apply", "controller", "lifecycle", "meta", "objects", "ownership", "prune", "resource", "source", "steps", "target"}

// row is a figure and its goal.
type row struct {
	what      string
	now, goal int
}

// rows returns the figures; page is docs/internals/engine.md, tests the number of lines of tests and their support.
func (c codeBase) rows(page string, tests int) []row {
	var inCore []file
	for _, folder := range core {
		inCore = append(inCore, c.below(engine+"/"+folder)...)
	}
	below := c.below(engine)
	secret := way(page, "A Secret changes")
	return []row{
		{"lines of code of the product", c.folders().total(), 55000},
		{"lines of tests and test support", tests, 100000},
		{"exported methods of the table of objects", methods(c.below(engine + "/objects")), 30},
		{"lines that convert one ID of an object into another", linesWith(below, converting), 0},
		{"lines that make the ID of an object or of an entry", linesWith(below, making), 60},
		{"lines of code of the engine core", sum(inCore, codeLines), 10000},
		{"lines of code below " + engine, sum(below, codeLines), 16500},
		{"fields of record", widest(c.below(engine+"/objects"), "record"), 14},
		{"fields of Run", widest(below, "Run"), 14},
		{"fields of activeWatch", widest(c.below(engine+"/target"), "activeWatch"), 14},
		{"methods of the type that has most", receivers(below), 30},
		{"sentinel errors", sum(below, sentinels), 14},
		{"mutexes in structs", sum(below, fieldsOf(isMutex)), 18},
		{"maps in structs", sum(below, fieldsOf(isMap)), 70},
		{"lines wider than 120 columns", sum(below, wideLines), 50},
		{"packages that read a watch", c.watchers(), 1},
		{"identifiers with a word of our own", len(c.ownWords()), 0},
		{"functions from a changed Secret to the request for its object", len(between(secret, step{"source/secretwatch.go", "Update"}, step{"target/client.go", "Update"})), 25},
		{"returns to a package before a run reads its Secrets", returns(between(secret, step{"controller/controller.go", "Reconcile"}, step{"controller/normal.go", "readSecrets"})), 2},
	}
}

func (c codeBase) print(out io.Writer, page string, tests int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "now\tgoal\t  what") // The flush returns the error.
	for _, r := range c.rows(page, tests) {
		_, _ = fmt.Fprintf(table, "%d\t%d\t  %s\n", r.now, r.goal, r.what)
	}
	return table.Flush()
}
