// docscheck checks the documents against the rules of docs/internals/development.md. It fails if, in any Markdown
// file of the repository,
//
//   - a link leads to a file or a heading that does not exist, or to another site without TLS,
//   - a page of docs is not reachable by links from README.md,
//
// and, in pages that people write, outside of code, tables and headings,
//
//   - a line has more than one sentence, or a sentence continues in the next line.
//
// A sentence whose subject is a clause ("What others have is left alone.") counts in pages and in comments of Go. A
// list has the number that each file still has.
//
// It also fails if a page names the version of the reference in another way than all others; if a version on the page
// about versions is not that of go.mod; if a module has one version in go.mod and another in that of the control
// plane; or if a message of the log at level error or info is not constant, or not on the page about logs.
//
// And it fails if the pages for users have more words, or comments more clauses that stand for a noun, than their budget.
//
// The argument is the root of the repository:
//
//	docscheck <root of the repository>
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docscheck <root of the repository>")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns an error for each problem of the documents below root.
func check(root string) error {
	pages, err := readPages(root)
	if err != nil {
		return err
	}
	problems := append(checkLinks(root, pages), unreachable(pages)...)
	for _, p := range pages {
		problems = append(problems, checkReference(p)...)
		if p.written() {
			problems = append(problems, checkSentences(p)...)
		}
	}
	problems = append(problems, checkWords(pages, mostWords)...)
	problems = append(problems, checkClauses(root, mostClauses, mostTestClauses)...)
	problems = append(problems, checkVersions(root)...)
	problems = append(problems, checkShared(root)...)
	problems = append(problems, checkHeadless(root, pages)...)
	problems = append(problems, checkMessages(root, pages)...)
	return errors.Join(problems...)
}

// page is a Markdown file.
type page struct {
	// path is relative to the root, with slashes.
	path  string
	lines []line
}

// line is a line of a page, with its context.
type line struct {
	number int
	text   string
	// code is a line of a fenced block, its fences included.
	code bool
}

// written reports whether people write the page: the contract keeps its form, and reference pages are generated.
func (p *page) written() bool {
	return !strings.HasPrefix(p.path, "docs/internals/contract/") && !strings.HasPrefix(p.path, "docs/reference/") && !p.generated()
}

// generated reports whether the first lines of the page have the mark of generated pages.
func (p *page) generated() bool {
	for _, l := range p.lines[:min(len(p.lines), 10)] {
		if strings.Contains(strings.ToLower(l.text), "generated") && strings.Contains(l.text, "do not edit") {
			return true
		}
	}
	return false
}

func (p *page) problem(l line, format string, arguments ...any) error {
	return fmt.Errorf("%s:%d: %s", p.path, l.number, fmt.Sprintf(format, arguments...))
}

// readPages reads all Markdown files below root.
func readPages(root string) ([]*page, error) {
	var pages []*page
	err := eachFile(root, ".md", func(path, content string) { pages = append(pages, parse(path, content)) })
	return pages, err
}

// eachFile calls read with each file below root that has an ending, except for hidden folders, test data and build
// results.
func eachFile(root, ending string, read func(path, content string)) error {
	return filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ending) {
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		read(filepath.ToSlash(relative), string(content))
		return nil
	})
}

// parse splits a page into lines, and finds its blocks of code.
func parse(path, content string) *page {
	p := &page{path: path}
	fence := ""
	for i, text := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
		l := line{number: i + 1, text: text, code: fence != ""}
		switch mark := fenceOf(text); {
		case fence == "" && mark != "":
			fence, l.code = mark, true
		case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimLeft(strings.TrimSpace(text), fence[:1]) == "":
			fence = ""
		}
		p.lines = append(p.lines, l)
	}
	return p
}

// fenceOf returns the run of backticks or tildes with which a line opens or closes a block of code, "" for none.
func fenceOf(text string) string {
	text = strings.TrimSpace(text)
	for _, mark := range []string{"`", "~"} {
		if n := len(text) - len(strings.TrimLeft(text, mark)); n >= 3 {
			return text[:n]
		}
	}
	return ""
}
