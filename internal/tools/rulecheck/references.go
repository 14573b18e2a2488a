package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// reference is a place that names an ID.
type reference struct {
	// path is relative to the root of the repository.
	path string
	line int
	id   string
	// asserted is set if a test names the ID in the name of a case or in the message of an assertion.
	asserted bool
}

// A string names a rule and, at most, another rule about the same behaviour. A string with more rules is a list,
// which asserts nothing.
const mostInString = 2

var (
	likeID = regexp.MustCompile(id)
	// A line of a table of cases, "<name of the case>: <question> => <answer>", in a string of several lines.
	inTable = regexp.MustCompile(`^\s*` + id + `[^:]*: .* => `)
)

// references returns the references in comments and strings of Go, and in the whole text of other files.
func references(root string, contract *contract) ([]reference, error) {
	var found []reference
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") && name != ".ci" || name == "bin" || name == "fuzz") {
				return filepath.SkipDir
			}
			return nil
		}
		if name == withdrawn {
			return nil
		}
		if !slices.Contains([]string{".go", ".md", ".txt", ".yaml", ".yml", ".svg"}, filepath.Ext(name)) && name != "Makefile" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		test := strings.HasSuffix(name, "_test.go")
		report := func(line int, text string, literal bool) {
			for i, id := range idsIn(text, contract.prefixes) {
				found = append(found, reference{relative, line, id, test && literal && i < mostInString})
			}
		}
		if filepath.Ext(name) == ".go" {
			texts(content, report)
			return nil
		}
		line := 0
		for text := range strings.Lines(string(content)) {
			line++
			report(line, text, false)
		}
		return nil
	})
	return found, err
}

// texts calls report with each line of each comment and string of a Go file, and reports whether it is the whole literal of a string, or a line of a
// table of cases: names of cases and messages have one line, other strings are documents.
func texts(source []byte, report func(line int, text string, literal bool)) {
	var s scanner.Scanner
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		position, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return
		case token.COMMENT, token.STRING:
			line := file.Line(position)
			whole := kind == token.STRING && !strings.Contains(literal, "\n")
			for text := range strings.Lines(literal) {
				report(line, text, whole || kind == token.STRING && inTable.MatchString(text))
				line++
			}
		}
	}
}

// idsIn returns the words of a text that have the form of an ID and a prefix of a defined one.
func idsIn(text string, prefixes map[string]bool) []string {
	var ids []string
	for _, at := range likeID.FindAllStringIndex(text, -1) {
		id := text[at[0]:at[1]]
		if prefixes[prefix(id)] && !partOfWord(text, at[0], at[1]) {
			ids = append(ids, id)
		}
	}
	return ids
}

// partOfWord reports whether the text between two offsets is only a part of a longer word, like P-C1 or R2d2.
func partOfWord(text string, from, to int) bool {
	if from > 0 && (text[from-1] == '-' || wordByte(text[from-1])) {
		return true
	}
	return to < len(text) && wordByte(text[to])
}

func wordByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// namedByTests returns the rules that a test names where it fails.
func namedByTests(references []reference, contract *contract) map[string]bool {
	named := map[string]bool{}
	for _, r := range references {
		if r.asserted {
			for _, rule := range contract.meant(r.id) {
				named[rule] = true
			}
		}
	}
	return named
}
