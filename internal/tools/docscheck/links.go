package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	inlineCode = regexp.MustCompile("`+[^`]*`+")
	// A link or a picture of Markdown, and what HTML has of both.
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\)`)
	htmlLink     = regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`)
	headingLine  = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	linkText     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// targets returns the targets of the links in a line.
func targets(text string) []string {
	text = inlineCode.ReplaceAllString(text, "``")
	var all []string
	for _, expression := range []*regexp.Regexp{markdownLink, htmlLink} {
		for _, match := range expression.FindAllStringSubmatch(text, -1) {
			all = append(all, match[1])
		}
	}
	return all
}

// anchors returns the anchors of a page's headings, as forges name them.
func (p *page) anchors() map[string]bool {
	all, seen := map[string]bool{}, map[string]int{}
	for _, l := range p.lines {
		match := headingLine.FindStringSubmatch(l.text)
		if l.code || match == nil {
			continue
		}
		name := anchor(match[1])
		if n := seen[name]; n > 0 {
			all[fmt.Sprintf("%s-%d", name, n)] = true
		} else {
			all[name] = true
		}
		seen[name]++
	}
	return all
}

// anchor returns the anchor of a heading: lower case, a dash for each space, without punctuation.
func anchor(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// checkLinks checks that the file and the heading of each link exist.
func checkLinks(root string, pages []*page) []error {
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	var problems []error
	for _, p := range pages {
		for _, l := range p.lines {
			if l.code {
				continue
			}
			for _, target := range targets(l.text) {
				if why := broken(root, byPath, p, target); why != "" {
					problems = append(problems, p.problem(l, "link to %s: %s", target, why))
				}
			}
		}
	}
	return problems
}

// broken returns the reason why a link is broken, "" if it is not. It does not request other sites.
func broken(root string, pages map[string]*page, from *page, target string) string {
	switch {
	case strings.HasPrefix(target, "https://"), strings.HasPrefix(target, "mailto:"):
		return ""
	case strings.Contains(target, "://"):
		return "only https"
	}
	file, heading, _ := strings.Cut(target, "#")
	to := from.resolve(file)
	if strings.HasPrefix(to, "../") {
		return "outside of the repository"
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
		return "no such file"
	}
	if heading == "" {
		return ""
	}
	if page := pages[to]; page == nil {
		return "only Markdown has headings"
	} else if !page.anchors()[heading] {
		return "no such heading"
	}
	return ""
}

// resolve returns the path, from the root, of a file that a link of the page names; "" is the page itself.
func (p *page) resolve(file string) string {
	if file == "" {
		return p.path
	}
	return path.Join(path.Dir(p.path), file)
}

// unreachable returns an error for each page of docs to which no links lead from README.md. A link to a folder leads to its README.md.
func unreachable(pages []*page) []error {
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	reached := map[string]bool{}
	var walk func(string)
	walk = func(name string) {
		p := byPath[name]
		if p == nil {
			p = byPath[path.Join(name, "README.md")]
		}
		if p == nil || reached[p.path] {
			return
		}
		reached[p.path] = true
		for _, l := range p.lines {
			if l.code {
				continue
			}
			for _, target := range targets(l.text) {
				if file, _, _ := strings.Cut(target, "#"); file != "" && !strings.Contains(target, "://") {
					walk(p.resolve(file))
				}
			}
		}
	}
	walk("README.md")
	var problems []error
	for _, p := range pages {
		if strings.HasPrefix(p.path, "docs/") && !reached[p.path] {
			problems = append(problems, fmt.Errorf("%s: no links lead there from README.md", p.path))
		}
	}
	return problems
}
