package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCheck(t *testing.T) {
	const fence = "```"
	for name, c := range map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"good": {
			reason: "files, headings, headings of other pages and other sites",
			files: map[string]string{
				"README.md":    "# A\n\nSee [b](docs/b.md#two--words), [here](#a), [it](https://example.com), [code](src/x.go) and [docs](docs).\n",
				"docs/b.md":    "## Two & `words`\n",
				"src/x.go":     "package x\n",
				"docs/c/d.svg": "<svg/>",
			},
		},
		"no file":            {"a file that is not there", map[string]string{"README.md": "[b](b.md)"}, []string{"README.md:1: link to b.md: no such file"}},
		"no heading":         {"a heading that is not there", map[string]string{"README.md": "# A\n[b](#b)"}, []string{"README.md:2: link to #b: no such heading"}},
		"heading of no page": {"a heading of what is no Markdown", map[string]string{"README.md": "[b](x.go#L1)", "x.go": ""}, []string{"only Markdown has headings"}},
		"second heading":     {"headings of the same text are numbered", map[string]string{"README.md": "# A\n# A\n[b](#a-1) [c](#a-2)"}, []string{"link to #a-2: no such heading"}},
		"picture":            {"HTML counts, too", map[string]string{"README.md": `<img src="docs/a.svg">`}, []string{"link to docs/a.svg: no such file"}},
		"no TLS":             {"plain HTTP", map[string]string{"README.md": "[b](http://example.com)"}, []string{"only https"}},
		"outside":            {"a way out of the repository", map[string]string{"README.md": "[b](../x)"}, []string{"outside of the repository"}},
		"code":               {"what looks like a link in code is none", map[string]string{"README.md": "`[b](b.md)`\n" + fence + "\n[c](c.md)\n" + fence + "\n"}, nil},
		"unreachable":        {"a page that no link leads to", map[string]string{"README.md": "[b](docs/b.md)", "docs/b.md": "B.", "docs/c.md": "C."}, []string{"docs/c.md: no links lead there from README.md"}},
		"folder":             {"a link to a folder leads to its README.md", map[string]string{"README.md": "[b](docs/b)", "docs/b/README.md": "[c](c.md)", "docs/b/c.md": "C."}, nil},
		"two sentences":      {"two sentences on a line", map[string]string{"README.md": "One is here. Two is, too."}, []string{"README.md:1: 2 sentences on a line"}},
		"dots":               {"dots that end no sentence", map[string]string{"README.md": "Version 1.30 of `a. B`, e.g. This one, is … Fine."}, nil},
		"label":              {"a label is no sentence", map[string]string{"README.md": "1. **Read.** The Secrets are read."}, nil},
		"link with a dot":    {"the text of a link counts", map[string]string{"README.md": "[It ends. It begins](README.md)."}, []string{"2 sentences"}},
		"goes on":            {"a sentence over two lines", map[string]string{"README.md": "This goes\non here."}, []string{"README.md:1: the sentence goes on in the next line"}},
		"item goes on":       {"an item over two lines", map[string]string{"README.md": "- This goes\n  on here."}, []string{"README.md:1: the sentence goes on"}},
		"items":              {"items need no full stop", map[string]string{"README.md": "Things:\n- one\n- two\n\n> Said.\n> Again."}, nil},
		"tables and code": {
			reason: "tables, headings and code may have what they need",
			files:  map[string]string{"README.md": "# One. Two\n\n| a. B | c. D |\n|---|---|\n" + fence + "yaml\nA. B\n" + fence + "\n"},
		},
		"contract":  {"the contract and generated pages keep their form", map[string]string{"README.md": "[a](docs/internals/contract/a.md) [b](docs/b.md)", "docs/internals/contract/a.md": "A. B.", "docs/b.md": "Generated from x: do not edit.\n\nA. B.\n"}, nil},
		"test data": {"other Markdown does not count", map[string]string{"README.md": "A.", "x/testdata/a.md": "[b](b.md)", ".git/a.md": "[b](b.md)"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(write(t, c.files))
			if len(c.want) == 0 {
				if err != nil {
					t.Errorf("%s: got %v", c.reason, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("%s: nothing was found", c.reason)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", c.reason, err, want)
				}
			}
			if got := len(strings.Split(err.Error(), "\n")); got != len(c.want) {
				t.Errorf("%s: %d problems, want %d: %v", c.reason, got, len(c.want), err)
			}
		})
	}
}
