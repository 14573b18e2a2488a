package main

import (
	"slices"
	"strings"
	"testing"
)

// TestQuestions: ten questions of somebody who knows nothing of the code are answered at most two links away from docs/README.md, in a section
// that has the words which make it an answer.
func TestQuestions(t *testing.T) {
	pages, err := readPages("../../..")
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]*page{}
	for _, p := range pages {
		byPath[p.path] = p
	}
	near := within(byPath, "docs/README.md", 2)
	for question, c := range map[string]struct {
		page, heading string
		words         []string
	}{
		"A process is not ready: why?":                  {"troubleshooting", "a-process-is-not-ready", []string{"readyz?verbose", "Probe fails"}},
		"How do I keep an edit for two hours?":          {"troubleshooting", "how-do-i-stop-it", []string{"kubectl espalier hold", "--for 2h"}},
		"What holds the deletion of a ManagedResource?": {"troubleshooting", "a-managedresource-does-not-go", []string{"finalizers", "keepObjects"}},
		"How much memory for admission-controller?":     {"sizing", "admission-controller", []string{"10,000 shoots", "MiB", "Request the memory"}},
		"What would the first pass write?":              {"migrate", "before", []string{"takeover", "--dry-run"}},
		"How do I go back to Gardener's component?":     {"migrate", "back", []string{"imageVectorOverwrite", "Nothing has to be converted"}},
		"What may a stolen gardenlet do?":               {"security", "who-may-attack-what", []string{"a seed's gardenlet", "references to objects"}},
		"Which ports must be open, and to whom?":        {"security", "who-can-reach-what", []string{"kube-apiserver", "kubelet", "Prometheus"}},
		"How are certificates rotated?":                 {"security", "certificates", []string{"read again when they change", "caBundle"}},
	} {
		path := "docs/operations/" + c.page + ".md"
		if !near[path] {
			t.Errorf("%s: %s is more than two links away from docs/README.md", question, path)
			continue
		}
		section := byPath[path].section(c.heading)
		for _, word := range c.words {
			if !strings.Contains(section, word) {
				t.Errorf("%s: %s#%s does not say %q", question, path, c.heading, word)
			}
		}
	}
}

// within returns the pages that are at most some links away from a page.
func within(pages map[string]*page, from string, links int) map[string]bool {
	reached := map[string]bool{from: true}
	next := []string{from}
	for range links {
		var after []string
		for _, name := range next {
			for _, l := range pages[name].lines {
				for _, target := range targets(l.text) {
					file, _, _ := strings.Cut(target, "#")
					to := pages[name].resolve(file)
					if !l.code && pages[to] != nil && !reached[to] {
						reached[to] = true
						after = append(after, to)
					}
				}
			}
		}
		next = after
	}
	return reached
}

// section is the text from a heading to the next one of its depth or above.
func (p *page) section(name string) string {
	depthOf := func(l line) int { return len(l.text) - len(strings.TrimLeft(l.text, "#")) }
	begin := slices.IndexFunc(p.lines, func(l line) bool {
		match := headingLine.FindStringSubmatch(l.text)
		return !l.code && match != nil && anchor(match[1]) == name
	})
	if begin < 0 {
		return ""
	}
	var text []string
	for _, l := range p.lines[begin+1:] {
		if depth := depthOf(l); !l.code && depth > 0 && depth <= depthOf(p.lines[begin]) {
			break
		}
		text = append(text, l.text)
	}
	return strings.Join(text, "\n")
}
