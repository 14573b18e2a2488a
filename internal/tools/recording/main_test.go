package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPictures: the pictures of the repository are those of its pages, small, and in the README.
func TestPictures(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pictures, err := draw(root)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"why", "hold", "diff", "replay"} {
		kept, err := os.ReadFile(filepath.Join(root, "docs", "recordings", name+".svg"))
		if err != nil || string(kept) != pictures[name] {
			t.Errorf("docs/recordings/%s.svg is not what the pages show, make generate draws it anew: %v", name, err)
		}
		if len(kept) > 40<<10 {
			t.Errorf("docs/recordings/%s.svg has %d bytes", name, len(kept))
		}
		if !strings.Contains(string(readme), "docs/recordings/"+name+".svg") {
			t.Errorf("README.md does not show docs/recordings/%s.svg", name)
		}
	}
}

// TestSession is how blocks look on a terminal.
func TestSession(t *testing.T) {
	for name, tc := range map[string]struct {
		page string
		want []string
	}{
		"commands and their output": {
			"<!-- recording: a -->\n```sh\nkubectl wait x\na b | sed -E 's/x/y/'\nc || echo no\n```\n\n```text\nout\n  put\n```\n", []string{"$ a b", "$ c", "out", "  put"},
		},
		"a console":                    {"<!-- recording: a -->\n```console\n$ a\nout\n$ echo $?\n1\n```\n", []string{"$ a", "out", "1"}},
		"a block that is not marked":   {"```sh\na\n```\n", nil},
		"text that belongs to nothing": {"<!-- recording: a -->\n```sh\na > b\n```\n\nwords\n\n```text\nout\n```\n", []string{"$ a > b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, b := range blocks(tc.page) {
				got = append(got, b.session()...)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFold: nothing is lost, and nothing is wider than the terminal.
func TestFold(t *testing.T) {
	line := "Owner           " + strings.Repeat("ä", 3*columns) + "<&>"
	rows, whole := fold(coloured(line)), ""
	for _, row := range rows {
		width := 0
		for _, s := range row {
			whole += s.text
			width += utf8.RuneCountInString(s.text)
		}
		if width > columns {
			t.Errorf("a row has %d columns", width)
		}
	}
	if whole != line || len(rows) != 4 {
		t.Errorf("%d rows with %q", len(rows), whole)
	}
	if svg := picture("a", []string{line, "-x", "$ b"}); !strings.Contains(svg, "&lt;&amp;&gt;") || !strings.Contains(svg, `<tspan class="c">Owner</tspan>`) {
		t.Error(svg)
	}
}
