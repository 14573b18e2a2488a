package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct{ link, problem string }{
		"a page":                  {"b.html", ""},
		"a place on a page":       {"sub/c.html#here", ""},
		"a place on this page":    {"#top", ""},
		"another site":            {"https://example.org/missing.html", ""},
		"no such page":            {"missing.html", "a.html: missing.html: there is no such file"},
		"no such place":           {"sub/c.html#there", "a.html: sub/c.html#there: there is no such place"},
		"a place in no page":      {"text.txt#here", "a.html: text.txt#here: there is no such place"},
		"a folder without a page": {"sub/", "a.html: sub/: there is no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, content := range map[string]string{
				"a.html": `<h1 id="top">A</h1><a href="` + test.link + `">link</a>`, "b.html": "b", "sub/c.html": `<h2 id="here">C</h2>`, "text.txt": "",
			} {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			pages, links, err := check(root)
			if pages != 3 && err == nil || links != 1 && err == nil {
				t.Errorf("%d pages and %d links, want 3 and 1", pages, links)
			}
			if problem := message(err); problem != test.problem {
				t.Errorf("problem %q, want %q", problem, test.problem)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(err.Error())
}
