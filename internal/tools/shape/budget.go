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
const budgetHead = `# Lines of code that each folder may have, without comments, tests and generated files.
# "make budgets" at a release lowers them to 5 % more than there is; a higher one is written by hand, with the reason in the commit.
`

// budgets are the lines of code that folders may have, by folder.
type budgets map[string]int

// folderOf returns the folder whose budget a file counts for: one of the top level, of internal, or of the engine. Generators and packages
// that only tests use are no product code.
func folderOf(file string) (folder string, counts bool) {
	folder = path.Dir(file)
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

// folders counts the lines of code of each folder.
func (c codeBase) folders() budgets {
	lines := budgets{}
	for _, f := range c {
		if folder, counts := folderOf(f.path); counts {
			lines[folder] += codeLines(f)
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
		var folder string
		var lines int
		if _, err := fmt.Sscan(line, &lines, &folder); err != nil {
			return nil, fmt.Errorf("%s: %q is not a number and a folder: %w", name, line, err)
		}
		b[folder] = lines
	}
	return b, nil
}

// check returns an error for each folder that has more lines than its budget, or no budget.
func (b budgets) check(folders budgets) error {
	var errs []error
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		switch budget, found := b[folder]; {
		case !found:
			errs = append(errs, fmt.Errorf("%s has %d lines of code and no budget", folder, folders[folder]))
		case folders[folder] > budget:
			errs = append(errs, fmt.Errorf("%s has %d lines of code, and a budget of %d", folder, folders[folder], budget))
		}
	}
	return errors.Join(errs...)
}

// lower writes the budgets, none higher than the lines of its folder and 5 % of room. Deleted folders have none.
func (b budgets) lower(folders budgets, name string) error {
	var out bytes.Buffer
	out.WriteString(budgetHead)
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		if budget, found := b[folder]; found {
			_, _ = fmt.Fprintf(&out, "%6d %s\n", min(budget, withRoom(folders[folder])), folder)
		}
	}
	return os.WriteFile(name, out.Bytes(), 0o600)
}

// withRoom returns a number of lines and 5 %, rounded up.
func withRoom(lines int) int { return lines + (lines+19)/20 }
