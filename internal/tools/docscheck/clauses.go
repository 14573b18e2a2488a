package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostClauses limits the clauses that stand for a noun in comments of the product, where there are none, and mostTestClauses
// those in comments of tests and tools, which only become fewer.
const (
	mostClauses     = 0
	mostTestClauses = 450
)

// A clause stands for a noun in "X is what …", "X are those that …", "X says whether …". A comment should use the
// noun.
var clause = regexp.MustCompile(`\b(?:is what|are what|are those (?:that|who)|is after what|says? whether|tells? of|looks? at|is the one (?:that|who)|are the ones|in vain|is how (?:many|long|often))\b`)

// After the name of a test or the ID of a rule, a clause stands for the subject in "TestSeal: what is sealed is refused".
var leading = regexp.MustCompile(`^ (?:Test\w+|[A-Z][A-Z0-9]*-[\w-]+(?:(?:, | and | … | to )[A-Z][A-Z0-9]*-[\w-]+)*): ` +
	`(?:what|whatever|whoever|who|those that|those who|one that|one who|whichever) \S`)

// checkClauses counts such clauses in the comments of files that people write: of the product, and of tests and tools.
func checkClauses(root string, most, mostInTests int) []error {
	count, inTests := 0, 0
	err := eachFile(root, ".go", func(path, content string) {
		folder, _, _ := strings.Cut(path, "/")
		counted := &count
		switch {
		case strings.Contains(path, "zz_generated"), strings.HasPrefix(path, "internal/tools/docscheck/"):
			return
		case strings.HasSuffix(path, "_test.go"), strings.HasPrefix(path, "internal/tools/"), folder == "test":
			counted = &inTests
		case !slices.Contains([]string{"api", "cmd", "internal"}, folder):
			return
		}
		for text := range strings.Lines(content) {
			if _, comment, found := strings.Cut(text, "//"); found {
				*counted += len(clause.FindAllString(comment, -1)) + len(leading.FindAllString(comment, -1))
			}
		}
	})
	if err != nil {
		return []error{err}
	}
	fmt.Printf("clauses for nouns in comments: %d of %d, in tests and tools %d of %d\n", count, most, inTests, mostInTests)
	var problems []error
	for _, c := range []struct {
		where     string
		has, most int
	}{{"the product", count, most}, {"tests and tools", inTests, mostInTests}} {
		if c.has > c.most {
			problems = append(problems, fmt.Errorf("comments of %s have %d clauses that stand for a noun, such as \"is what\" and \"says whether\", "+
				"and a budget of %d: see internal/tools/docscheck/clauses.go", c.where, c.has, c.most))
		}
	}
	return problems
}
