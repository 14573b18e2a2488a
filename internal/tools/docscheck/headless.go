package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// headlessList has the number of sentences, by file, that are older than this check. A number only gets smaller.
const headlessList = "internal/tools/docscheck/headless.txt"

// A sentence is headless if a clause is its subject, as in "What others have is left alone". A question is not
// headless.
var headless = regexp.MustCompile(`(?:^|[.!?:;] )["“(]?(?:What|Whatever|Whoever|Who|Those that|Those who|One that|One who|Whichever) \S`)

// checkHeadless compares the headless sentences of pages and of comments in Go with the list.
func checkHeadless(root string, pages []*page) []error {
	listed, err := readHeadless(filepath.Join(root, headlessList))
	if err != nil {
		return []error{err}
	}
	found, err := headlessComments(root)
	if err != nil {
		return []error{err}
	}
	for _, p := range pages {
		if !p.written() {
			continue
		}
		for _, l := range p.lines {
			if text, prose := proseOf(l); prose && isHeadless(plain(text)) {
				found[p.path] = append(found[p.path], l.number)
			}
		}
	}
	var problems []error
	for file, lines := range found {
		if len(lines) > listed[file] {
			problems = append(problems, fmt.Errorf("%s: %d sentences begin with a clause in place of a subject, %d are listed in %s: lines %v", file, len(lines), listed[file], headlessList, lines))
		}
	}
	for file, count := range listed {
		if len(found[file]) < count {
			problems = append(problems, fmt.Errorf("%s: %s has %d for %s, and there are %d", headlessList, filepath.Base(headlessList), count, file, len(found[file])))
		}
	}
	return problems
}

func isHeadless(text string) bool {
	for _, sentence := range strings.SplitAfter(text, ". ") {
		if sentence = strings.TrimSpace(sentence); headless.MatchString(sentence) && !strings.HasSuffix(sentence, "?") {
			return true
		}
	}
	return false
}

// readHeadless reads lines of a count and a file.
func readHeadless(name string) (map[string]int, error) {
	content, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	listed := map[string]int{}
	for text := range strings.Lines(string(content)) {
		count, file, found := strings.Cut(strings.TrimSpace(text), " ")
		n, err := strconv.Atoi(count)
		if !found || err != nil {
			return nil, fmt.Errorf("%s: %q is no count and file", headlessList, strings.TrimSpace(text))
		}
		listed[file] = n
	}
	return listed, nil
}

// headlessComments returns, by file, the lines of comments in Go in which such a sentence begins.
func headlessComments(root string) (map[string][]int, error) {
	found := map[string][]int{}
	err := eachFile(root, ".go", func(path, content string) {
		number, before := 0, ""
		for text := range strings.Lines(content) {
			number++
			comment, is := strings.CutPrefix(strings.TrimSpace(text), "// ")
			// A line that continues the sentence of the line before does not count.
			begins := before == "" || strings.HasSuffix(before, ".") || strings.HasSuffix(before, ":")
			if is && (begins && isHeadless(comment) || !begins && isHeadless("x"+comment)) {
				found[path] = append(found[path], number)
			}
			if before = ""; is {
				before = comment
			}
		}
	})
	return found, err
}
