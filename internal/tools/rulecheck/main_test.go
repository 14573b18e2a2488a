package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const authors = `# Rules

| ID | Rule |
|---|---|
| ZZ-1 | about SHA-256 |
| ZZ-2 | see ZZ-1 |
| ZZ-4e | one half |
| ZZ-4g | the other half |
`

// TestCheck is what rulecheck is for: each case is a repository, and what is said about it.
func TestCheck(t *testing.T) {
	const test = "package x\n\nvar _ = []string{\"ZZ-1/x\", \"ZZ-2, ZZ-4: y\"}\n"
	const head = "| rules | why |\n|---|---|\n"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		// wants are parts of the error; none means that there is no error.
		wants []string
		// says is a part of the output.
		says string
	}{
		"good": {"every rule is named, a whole rule means its parts", map[string]string{"x/x_test.go": test}, nil, "4 rules, 4 named by tests, 0 explained"},
		"defined twice in two documents": {"an ID means one thing", map[string]string{"x/x_test.go": test, "docs/internals/contract/b.md": "- ZZ-1 something else\n"},
			[]string{"ZZ-1 is defined twice: a.md:5 and b.md:1"}, ""},
		"a decision about a rule": {"the page of decisions names whose rule it is about", map[string]string{"x/x_test.go": test, "docs/internals/contract/README.md": "| # | decided |\n|---|---|\n| ZZ-1 | so |\n"}, nil, "4 rules"},
		"a decision of its own":   {"it is a rule like others", map[string]string{"x/x_test.go": test, "docs/internals/contract/README.md": "| # | decided |\n|---|---|\n| Y1, Y2 | so |\n"}, []string{"neither named by a test nor explained: Y1 Y2"}, "6 rules"},
		"a decision that nobody took": {"decisions are IDs, too", map[string]string{"x/x_test.go": test + "// Y1, Y3\n", "docs/internals/contract/README.md": "| # | decided |\n|---|---|\n| Y1 | so |\n"},
			[]string{"x/x_test.go:4: Y3 is not defined"}, ""},
		"undefined in code":     {"a comment", map[string]string{"x/x_test.go": test, "x/x.go": "package x\n\n/* one\nZZ-3 */\n"}, []string{"1 references to nothing", "x/x.go:4: ZZ-3 is not defined"}, ""},
		"undefined in a string": {"names of cases are strings", map[string]string{"x/x_test.go": test + "var _ = \"ZZ-3/x\"\n"}, []string{"x/x_test.go:4: ZZ-3 is not defined"}, ""},
		"undefined in a document": {"documents", map[string]string{"x/x_test.go": test, "docs/x.md": "as ZZ-9 says\n"},
			[]string{"docs/x.md:1: ZZ-9 is not defined"}, ""},
		"undefined part":       {"ZZ-4 has parts e and g only", map[string]string{"x/x_test.go": test, "docs/x.md": "ZZ-4f\n"}, []string{"docs/x.md:1: ZZ-4f is not defined"}, ""},
		"part of a whole rule": {"ZZ-1b is the second sentence of ZZ-1", map[string]string{"x/x_test.go": test, "docs/x.md": "ZZ-1b\n"}, nil, ""},
		"row without document": {"BH-QQ-1 is not called QQ-1", map[string]string{"x/x_test.go": test + "// BH-QQ-1, QQ-1\n", "docs/internals/contract/b.md": "- BH-QQ-1 a row\n"}, []string{"x/x_test.go:4: QQ-1 is not defined"}, ""},
		"a Go identifier":      {"only comments and strings name rules", map[string]string{"x/x_test.go": test + "var ZZ = 4\n\nvar _ = ZZ-3\n"}, nil, ""},
		"not named":            {"", map[string]string{"x/x_test.go": "package x\nvar _ = \"ZZ-1\"\n", "x/x.go": "package x\n// ZZ-2, ZZ-4e\n"}, []string{"neither named by a test nor explained: ZZ-2 ZZ-4e ZZ-4g"}, "4 rules, 1 named"},
		"explained":            {"alone and by prefix", map[string]string{"x/x_test.go": "package x\nvar _ = \"ZZ-1\"\n", "docs/internals/contract/untested.md": head + "| ZZ-2 | see ZZ-1 |\n| ZZ-* | not built |\n"}, nil, "1 named by tests, 3 explained"},
		"named in a comment":   {"nothing fails there", map[string]string{"x/x_test.go": test + "// ZZ-5\n", "docs/internals/contract/b.md": "- ZZ-5 x\n"}, []string{"neither named by a test nor explained: ZZ-5"}, ""},
		"named in a list":      {"the third of a list is not asserted", map[string]string{"x/x_test.go": "package x\nvar _ = \"ZZ-1, ZZ-2, ZZ-4: x\"\n"}, []string{"neither named by a test nor explained: ZZ-4e ZZ-4g"}, ""},
		"named in a document":  {"a string of more than one line is data", map[string]string{"x/x_test.go": test + "var _ = `ZZ-5\n`\n", "docs/internals/contract/b.md": "- ZZ-5 x\n"}, []string{"neither named by a test nor explained: ZZ-5"}, ""},
		"named in a table":     {"a line of a table of cases begins with the case's name", map[string]string{"x/x_test.go": test + "var _ = `\nZZ-5/x: a question => an answer\n`\n", "docs/internals/contract/b.md": "- ZZ-5 x\n"}, nil, "5 rules, 5 named"},
		"explained for nothing": {"so that the page stays true", map[string]string{"x/x_test.go": test, "docs/internals/contract/untested.md": head + "| ZZ-2 | hard |\n| YY-* | not built |\n"},
			[]string{"named by tests: ZZ-2 YY-*"}, ""},
		"withdrawn": {"its page may name it", map[string]string{"x/x_test.go": test, "docs/internals/contract/withdrawn.md": head + "| ZZ-3, XX-* | see ZZ-1 |\n"}, nil, "4 rules"},
		"withdrawn, named": {"nothing else may name it", map[string]string{"x/x_test.go": test, "docs/x.md": "XX-7\n", "docs/internals/contract/withdrawn.md": head + "| XX-* | gone |\n"},
			[]string{"docs/x.md:1: XX-7 is not defined"}, ""},
		"withdrawn, defined": {"an ID is not used again", map[string]string{"x/x_test.go": test, "docs/internals/contract/withdrawn.md": head + "| ZZ-2 | gone |\n"},
			[]string{"ZZ-2 is withdrawn in docs/internals/contract/withdrawn.md, but defined again"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, root, "docs/internals/contract/a.md", authors)
			write(t, root, "docs/internals/contract/untested.md", "# Nothing\n")
			write(t, root, "docs/internals/contract/withdrawn.md", "# Nothing\n")
			for path, content := range tc.files {
				write(t, root, path, content)
			}
			var out strings.Builder
			err := check(root, &out)
			if (err == nil) != (len(tc.wants) == 0) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			for _, want := range tc.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", tc.reason, err, want)
				}
			}
			if !strings.Contains(out.String(), tc.says) {
				t.Errorf("%s: got output %s, want %q", tc.reason, out.String(), tc.says)
			}
		})
	}
}

func write(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
