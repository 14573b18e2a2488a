package main

import "testing"

// TestWords: words of the pages for users count, those for developers do not.
func TestWords(t *testing.T) {
	pages := []*page{parse("README.md", "# One two\n\nthree\n"), parse("docs/internals/a.md", "four five\n"), parse("test/a.md", "seven\n"), parse("docs/a.md", "```\nsix\n```\n")}
	if got := checkWords(pages, 6+1); got != nil {
		t.Errorf("at the budget: %v", got)
	}
	if got := checkWords(pages, 6); len(got) != 1 {
		t.Errorf("above the budget: %v", got)
	}
}
