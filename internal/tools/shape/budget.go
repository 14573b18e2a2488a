package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// budgetHead begins the file of budgets.
const budgetHead = `# Lines of code that each room may have, without comments, tests and generated files.
# "make generate" lowers a budget that a room does not use up; a higher one is written by hand, with the reason in the commit.
`

// budgets are the lines of code that rooms may have, by folder.
type budgets map[string]int

// roomOf returns the room that a file belongs to: a folder of the top level, of internal, or of the engine. Generators, and what
// only tests use, are no product code.
func roomOf(file string) (room string, counts bool) {
	folder := path.Dir(file)
	depth := 1
	switch {
	case strings.HasPrefix(folder, "internal/gen"), strings.HasSuffix(folder, "test"):
		return "", false
	case strings.HasPrefix(folder, engine+"/"):
		depth = 3
	case strings.HasPrefix(folder, "internal/"):
		depth = 2
	}
	parts := strings.Split(folder, "/")
	return strings.Join(parts[:min(depth, len(parts))], "/"), true
}

// rooms counts the lines of code of each room.
func (h house) rooms() budgets {
	lines := budgets{}
	for _, f := range h {
		if room, counts := roomOf(f.path); counts {
			lines[room] += codeLines(f)
		}
	}
	return lines
}

func (b budgets) total() (total int) {
	for _, lines := range b {
		total += lines
	}
	return total
}

func readBudgets(name string) (budgets, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	b := budgets{}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var room string
		var lines int
		if _, err := fmt.Sscan(line, &lines, &room); err != nil {
			return nil, fmt.Errorf("%s: %q is no number and room: %w", name, line, err)
		}
		b[room] = lines
	}
	return b, nil
}

// check returns an error for each room that has more lines than its budget, or no budget.
func (b budgets) check(rooms budgets) error {
	var errs []error
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		switch budget, found := b[room]; {
		case !found:
			errs = append(errs, fmt.Errorf("%s has %d lines of code and no budget", room, rooms[room]))
		case rooms[room] > budget:
			errs = append(errs, fmt.Errorf("%s has %d lines of code, and a budget of %d", room, rooms[room], budget))
		}
	}
	return errors.Join(errs...)
}

// lower writes the budgets, none higher than what its room has now; rooms that are gone have none.
func (b budgets) lower(rooms budgets, name string) error {
	var out bytes.Buffer
	out.WriteString(budgetHead)
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		if budget, found := b[room]; found {
			_, _ = fmt.Fprintf(&out, "%6d %s\n", min(budget, rooms[room]), room)
		}
	}
	return os.WriteFile(name, out.Bytes(), 0o600)
}
