// Package messages has all texts of the controllers that can reach a condition, an Event or the log in one table.
package messages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/golden"
	"github.com/espalier-project/espalier/test/must"
)

// texts are the functions whose arguments are texts for people, by name, with the kind of text.
var texts = map[string]string{
	"Errorf": "error", "New": "error", "Info": "log", "Error": "log", "Warn": "Event", "Tell": "Event", "Applied": "condition", "Sprintf": "part",
}

// unclear are words whose meaning a reader of a message has to guess, with what to write instead.
var unclear = map[string]string{
	"let go of": "release", "lets go of": "releases", "on record": "in the inventory, tracked", "its turn": "wait", "ondemn": "mark for deletion", "cquit": "unmark",
	"in vain": "without a result", "elsewhere": "in another namespace", "heed": "check", "untold": "not reported",
}

// TestMessages prints the texts in one table, messages.md: whoever changes one sees it among the others. Run it with -update after a review.
func TestMessages(t *testing.T) {
	root := filepath.Join("..", "..", "internal")
	table := &strings.Builder{}
	table.WriteString("# Texts of the controllers\n\nEach names the object, and says what happened and what happens next. %s and %v are values; a part is put into another text.\n")
	for _, folder := range []string{"managedresource", "controller", "marked"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			rows, err := textsIn(path)
			if err != nil || len(rows) == 0 {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "\n## %s\n\n| kind | text |\n|---|---|\n%s", filepath.ToSlash(name), strings.Join(rows, ""))
			return nil
		})
		must.Succeed(t, err)
	}
	for word, instead := range unclear {
		for line := range strings.Lines(table.String()) {
			expect.False(t, strings.Contains(line, word), "%q is unclear, write %q: %s", word, instead, line)
		}
	}
	golden.Compare(t, "messages.md", table.String())
}

// textsIn returns a row for each text in a file, in their order.
func textsIn(path string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	var rows []string
	add := func(kind string, sentences []ast.Expr) {
		for _, sentence := range sentences {
			// Keys of log lines, formats and reasons are no sentences.
			if text := literal(sentence); strings.Count(text, " ") > 1 {
				row := fmt.Sprintf("| %s | %s |\n", kind, strings.ReplaceAll(text, "|", "\\|"))
				if !slices.Contains(rows, row) {
					rows = append(rows, row)
				}
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && texts[selector.Sel.Name] != "" {
				add(texts[selector.Sel.Name], n.Args)
			}
		case *ast.ValueSpec: // A constant error.
			if named, ok := n.Type.(*ast.Ident); ok && named.Name == "refusal" {
				add("error", n.Values)
			}
		}
		return true
	})
	return rows, nil
}

// literal returns the text of a string, or of strings that are put together.
func literal(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return strings.ReplaceAll(text, "\n", "\\n")
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}
