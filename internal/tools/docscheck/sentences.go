package main

import (
	"regexp"
	"strings"
)

var (
	// The marks before the text of a line: quotes, and the mark of an item.
	quoteMark = regexp.MustCompile(`^(\s*>\s?)+`)
	itemMark  = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?`)
	// A label that opens an item or a paragraph, such as **Read.**, is no sentence.
	label = regexp.MustCompile(`^\*\*[^*]+\*\*:?\s*`)
	// The end of a sentence, and the characters that may follow before the next one begins.
	sentenceEnd  = regexp.MustCompile(`[.!?]["'”)*_]*\s+["'“(*_\[]*[\p{Lu}\p{N}§]`)
	lineEnd      = regexp.MustCompile(`[.!?:]["'”)*_]*$`)
	abbreviation = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|vs|cf|No|approx)\.$`)
)

// checkSentences requires that each line of a page's prose has one sentence.
func checkSentences(p *page) []error {
	var problems []error
	for i, l := range p.lines {
		text, prose := proseOf(l)
		if !prose {
			continue
		}
		text = plain(text)
		if n := sentences(text); n > 1 {
			problems = append(problems, p.problem(l, "%d sentences on a line", n))
		}
		if i+1 < len(p.lines) && continues(p.lines[i+1]) && !lineEnd.MatchString(text) {
			problems = append(problems, p.problem(l, "the sentence goes on in the next line"))
		}
	}
	return problems
}

// proseOf returns the text of a line without marks, and whether it is prose at all.
func proseOf(l line) (string, bool) {
	text := strings.TrimSpace(itemMark.ReplaceAllString(quoteMark.ReplaceAllString(l.text, ""), ""))
	switch {
	case l.code, text == "", strings.HasPrefix(text, "|"), strings.HasPrefix(text, "<"), strings.HasPrefix(text, "#"), strings.Trim(text, "-=") == "":
		return "", false
	}
	return text, true
}

// continues reports whether a line belongs to the paragraph or the item of the line before it.
func continues(l line) bool {
	text, prose := proseOf(l)
	return prose && text == strings.TrimSpace(quoteMark.ReplaceAllString(l.text, ""))
}

// plain returns the text as a reader sees it: code is one word, of links only their text, of labels nothing.
func plain(text string) string {
	text = inlineCode.ReplaceAllStringFunc(text, func(code string) string { return "Code" })
	text = linkText.ReplaceAllString(text, "$1")
	if rest := label.ReplaceAllString(text, ""); rest != "" {
		text = rest
	}
	return strings.TrimSpace(text)
}

// sentences counts the sentences of a line.
func sentences(text string) int {
	n := 1
	for _, at := range sentenceEnd.FindAllStringIndex(text, -1) {
		if !abbreviation.MatchString(text[:at[0]+1]) {
			n++
		}
	}
	return n
}
