package main

import (
	"fmt"
	"strings"
)

// mostWords limits the words of the pages for users: of all pages but those of docs/internals and test. It goes down with
// each page that becomes shorter, and up only with a reason in the commit.
const mostWords = 39_999

// checkWords counts the words of the pages for users.
func checkWords(pages []*page, most int) []error {
	words, generated := 0, 0
	for _, p := range pages {
		if strings.HasPrefix(p.path, "docs/internals/") || strings.HasPrefix(p.path, "test/") {
			continue
		}
		for _, l := range p.lines {
			words += len(strings.Fields(l.text))
			if strings.HasPrefix(p.path, "docs/reference/") {
				generated += len(strings.Fields(l.text))
			}
		}
	}
	fmt.Printf("words of the pages for users: %d of %d, and %d of them generated\n", words, most, generated)
	if words > most {
		return []error{fmt.Errorf("the pages for users have %d words, and a budget of %d: see internal/tools/docscheck/words.go", words, most)}
	}
	return nil
}
