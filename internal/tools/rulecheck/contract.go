package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// id matches an ID: MR-4, MRA-6a, BH-MR-4 (a row of behaviours.md), C17 and T3-1 (decisions).
const id = `(?:[A-Z]\d-\d+|[A-Z]{1,4}-(?:[A-Z]{1,4}-)?\d+[a-z]?|[A-Z]\d+[a-z]?)`

var (
	separator = regexp.MustCompile(`^\|[-: |]+\|$`)
	// An ID is defined by a cell of its own in a column that is headed "ID" or, being the first one, "#", …
	inCell = regexp.MustCompile("^[ *`]*(" + id + "(?:, " + id + ")*)[ *`⚠]*$")
	// … or by opening a list item. If a colon, a comma or a slash follows, the item is only about that rule.
	inList = regexp.MustCompile(`^\s*(?:[-*]|\d+\.) (?:\*\*(` + id + `)\*\* |(` + id + `) )`)
	listed = regexp.MustCompile(id)
)

// decisions is the page whose rows are new decisions, or decisions about rules that another document defines.
const decisions = "README.md"

// contract has the IDs that docs/internals/contract defines.
type contract struct {
	// ids in the order of files and lines.
	ids   []string
	known map[string]bool
	// parts leads from an ID without its last letter to those that have it: SR-4 means SR-4e and SR-4g.
	parts map[string][]string
	// prefixes are the IDs without their numbers, also without the document: BH-HL-1 makes HL- a prefix, so that a row of behaviours.md
	// is not named without BH-. A text without a prefix is no ID: SHA-256, UTF-8, TLS1.
	prefixes map[string]bool
}

// meant returns the rules that a reference means: the ID itself, the ID without a letter (MRT-2c is a part of MRT-2), or all its parts.
func (c *contract) meant(reference string) []string {
	whole := strings.TrimRight(reference, "abcdefghijklmnopqrstuvwxyz")
	switch {
	case c.known[reference]:
		return []string{reference}
	case c.known[whole]:
		return []string{whole}
	case whole == reference:
		return c.parts[whole]
	}
	return nil
}

func prefix(id string) string {
	if len(id) > 2 && id[2] == '-' && id[1] >= '0' && id[1] <= '9' {
		return id[:3]
	}
	return id[:strings.IndexAny(id, "0123456789")]
}

type definition struct {
	id, file string
	line     int
}

// readContract returns the contract in the documents of a folder, and an error for each ID that is defined twice.
func readContract(folder string) (*contract, []error, error) {
	entries, err := fs.Glob(os.DirFS(folder), "*.md")
	if err != nil {
		return nil, nil, err
	}
	var all, decided []definition
	for _, name := range entries {
		if name == untested || name == withdrawn {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, nil, err
		}
		if name == decisions {
			decided = definitions(name, string(content))
		} else {
			all = append(all, definitions(name, string(content))...)
		}
	}
	// A row of the decisions defines an ID if no other document does; otherwise it is about that document's rule.
	elsewhere := map[string]bool{}
	for _, d := range all {
		elsewhere[d.id] = true
	}
	all = append(slices.DeleteFunc(decided, func(d definition) bool { return elsewhere[d.id] }), all...)

	result := &contract{known: map[string]bool{}, parts: map[string][]string{}, prefixes: map[string]bool{}}
	first := map[string]definition{}
	var twice []error
	for _, d := range all {
		if earlier, found := first[d.id]; found {
			twice = append(twice, fmt.Errorf("%s is defined twice: %s:%d and %s:%d", d.id, earlier.file, earlier.line, d.file, d.line))
			continue
		}
		first[d.id] = d
		result.ids = append(result.ids, d.id)
		result.known[d.id], result.prefixes[prefix(d.id)] = true, true
		if _, rule, found := strings.Cut(prefix(d.id), "-"); found && strings.Contains(rule, "-") {
			result.prefixes[rule] = true
		}
		if whole := strings.TrimRight(d.id, "abcdefghijklmnopqrstuvwxyz"); whole != d.id {
			result.parts[whole] = append(result.parts[whole], d.id)
		}
	}
	return result, twice, nil
}

// definitions returns the definitions of one document, in order.
func definitions(file, content string) []definition {
	var found []definition
	before, column, line := "", 0, 0
	for text := range strings.Lines(content) {
		line++
		text = strings.TrimRight(text, "\n")
		switch {
		case separator.MatchString(text):
			column = columnOfIDs(before)
		case strings.HasPrefix(text, "|"):
			cells := strings.Split(text, "|")
			if column == 0 || len(cells) <= column {
				break
			}
			if match := inCell.FindStringSubmatch(cells[column]); match != nil {
				for _, id := range listed.FindAllString(match[1], -1) {
					found = append(found, definition{id, file, line})
				}
			}
		default:
			if match := inList.FindStringSubmatch(text); match != nil {
				found = append(found, definition{match[1] + match[2], file, line})
			}
		}
		before = text
	}
	return found
}

// columnOfIDs returns which cell of a table's rows defines IDs, counted from 1, or 0.
func columnOfIDs(head string) int {
	for i, cell := range strings.Split(head, "|") {
		if cell = strings.TrimSpace(cell); cell == "ID" || cell == "#" && i == 1 && !strings.Contains(head, "| ID |") {
			return i
		}
	}
	return 0
}
