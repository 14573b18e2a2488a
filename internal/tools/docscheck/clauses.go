package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mostClauses limits the clauses that stand for a noun in comments of the product: there are none.
const mostClauses = 0

// A clause stands for a noun in "X is what …", "X are those that …", "X says whether …"; a comment names the noun.
var clause = regexp.MustCompile(`\b(?:is what|are what|are those (?:that|who)|is after what|says? whether|tells? of|looks? at|is the one (?:that|who)|are the ones|in vain|is how (?:many|long|often))\b`)

// checkClauses counts such clauses in the comments of files that people write and that are no tests.
func checkClauses(root string, most int) []error {
	count := 0
	err := eachFile(root, ".go", func(path, content string) {
		folder, _, _ := strings.Cut(path, "/")
		if !slices.Contains([]string{"api", "cmd", "internal"}, folder) || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "zz_generated") || strings.HasPrefix(path, "internal/tools/") {
			return
		}
		for text := range strings.Lines(content) {
			if _, comment, found := strings.Cut(text, "//"); found {
				count += len(clause.FindAllString(comment, -1))
			}
		}
	})
	if err != nil {
		return []error{err}
	}
	fmt.Printf("clauses for nouns in comments: %d of %d\n", count, most)
	if count > most {
		return []error{fmt.Errorf("comments have %d clauses that stand for a noun, such as \"is what\" and \"says whether\", and a budget of %d: see internal/tools/docscheck/clauses.go", count, most)}
	}
	return nil
}
