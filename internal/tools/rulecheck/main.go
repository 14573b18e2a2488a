// rulecheck compares the rules of docs/contract with the names of tests: it prints the rules that no test names, and fails
// if one of them is not explained in docs/contract/untested.md.
//
//	rulecheck <root of the repository>
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

var (
	// A rule stands in the first cell of a table row, or opens a list item.
	ruleInTable = regexp.MustCompile(`^\| \*{0,2}([A-Z]{2,4}-\d+[a-z]?)`)
	ruleInList  = regexp.MustCompile(`^- \*{0,2}([A-Z]{2,4}-\d+[a-z]?)`)
	anyRule     = regexp.MustCompile(`\b[A-Z]{1,4}-?\d+[a-z]?\b`)
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rulecheck <root of the repository>")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "rulecheck:", err)
		os.Exit(1)
	}
}

func check(root string) error {
	rules, err := rulesIn(filepath.Join(root, "docs", "contract"))
	if err != nil {
		return err
	}
	named, err := namedIn(root, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	if err != nil {
		return err
	}
	explained, err := namedIn(filepath.Join(root, "docs", "contract"), func(path string) bool { return filepath.Base(path) == "untested.md" })
	if err != nil {
		return err
	}
	var untested, unexplained []string
	for _, rule := range rules {
		switch {
		case named[rule]:
		case explained[rule]:
			untested = append(untested, rule)
		default:
			unexplained = append(unexplained, rule)
		}
	}
	fmt.Printf("%d rules, %d named by tests, %d explained in docs/contract/untested.md\n", len(rules), len(rules)-len(untested)-len(unexplained), len(untested))
	fmt.Printf("not named by any test, for the reasons given there: %s\n", strings.Join(untested, " "))
	if len(unexplained) > 0 {
		return fmt.Errorf("neither named by a test nor explained: %s", strings.Join(unexplained, " "))
	}
	return nil
}

func rulesIn(folder string) ([]string, error) {
	var rules []string
	err := walk(folder, func(path string) bool { return strings.HasSuffix(path, ".md") && filepath.Base(path) != "untested.md" }, func(line string) {
		for _, pattern := range []*regexp.Regexp{ruleInTable, ruleInList} {
			if match := pattern.FindStringSubmatch(line); match != nil && !slices.Contains(rules, match[1]) {
				rules = append(rules, match[1])
			}
		}
	})
	return rules, err
}

// namedIn collects everything that looks like a rule.
func namedIn(folder string, wanted func(string) bool) (map[string]bool, error) {
	named := map[string]bool{}
	err := walk(folder, wanted, func(line string) {
		for _, rule := range anyRule.FindAllString(line, -1) {
			named[rule] = true
		}
	})
	return named, err
}

func walk(folder string, wanted func(string) bool, line func(string)) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !wanted(path) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for text := range strings.Lines(string(content)) {
			line(text)
		}
		return nil
	})
}
