package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestShape(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"internal/managedresource/objects/table.go": `package objects

import (
	"errors"
	"sync"
)

/* A comment
of two lines. */
type Table struct{ record }

type record struct {
	mu   sync.Mutex
	a, b map[string]int
}

var errLost = errors.New("lost")

func (t *Table) View(of string) (told bool) {
	text := ` + "`" + `two
lines` + "`" + `
	return text == of
}

func (t *Table) hidden() {}
`,
		"internal/managedresource/objects/table_test.go":  "package objects\n\ntype keeper map[string]int\n",
		"internal/managedresource/target/watch.go":        "package target\n\nfunc f() { key := IDOf(w.ResultChan()).Scoped(true) } // " + strings.Repeat("x", 120) + "\n",
		"internal/managedresource/merge/zz_generated.go":  "package merge\n\ntype keeper int\n",
		"internal/managedresource/merge/merge.go":         "package merge\n\nvar looksAt int\n",
		"internal/managedresource/merge/testdata/more.go": "package merge\n\nvar looksAt int\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"api", "cmd"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	codeBase, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := testLines(root)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := codeBase.print(&table, "# Engine\n\n## A Secret changes\n\n1. `source/secretwatch.go` `Update` and `controller/controller.go` `Reconcile`\n2. `source/b.go` `Get`, "+
		"`controller/normal.go` `readSecrets`\n\n`controller/a.go` `outside`\n\n3. `target/client.go` `Update`.\n\n## Drift\n\n1. `target/sink.go` `Update`\n", tests); err != nil {
		t.Fatal(err)
	}
	const want = `  now    goal  what
   21   55000  lines of code of the product
    3  100000  lines of tests and test support
    1      30  exported methods of the table of objects
    1       0  lines that convert one ID of an object into another
    1      60  lines that make the ID of an object or of an entry
   19   10000  lines of code of the engine core
   21   16500  lines of code below internal/managedresource
    3      14  fields of record
    0      14  fields of Run
    0      14  fields of activeWatch
    2      30  methods of the type that has most
    1      14  sentinel errors
    1      18  mutexes in structs
    2      70  maps in structs
    1      50  lines wider than 120 columns
    1       1  packages that read a watch
    2       0  identifiers with a word of our own
    5      25  functions from a changed Secret to the request for its object
    1       2  returns to a package before a run reads its Secrets
`
	if table.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", table.String(), want)
	}
	words := strings.Join(codeBase.ownWords(), "\n")
	const wantWords = `internal/managedresource/merge/merge.go:3 looksAt: reads
internal/managedresource/objects/table.go:19 told: reported`
	if words != wantWords {
		t.Errorf("printed\n%s\nwant\n%s", words, wantWords)
	}
}

func TestBudgets(t *testing.T) {
	for file, want := range map[string]string{
		"api/resources/v1alpha1/types.go": "api", "cmd/resource-manager/main.go": "cmd", "internal/graph/graph.go": "internal/graph",
		"internal/webhook/referrers/index.go": "internal/webhook", "internal/managedresource/target/a/b.go": "internal/managedresource/target", "internal/gen/docs/main.go": "",
	} {
		if folder, _ := folderOf(file); folder != want {
			t.Errorf("%s is in folder %q, want %q", file, folder, want)
		}
	}
	name := filepath.Join(t.TempDir(), "budget.txt")
	if err := (budgets{"a": 10, "b": 10, "gone": 10}).lower(budgets{"a": 12, "b": 6, "new": 5}, name); err != nil {
		t.Fatal(err)
	}
	b, err := readBudgets(name)
	if err != nil || len(b) != 2 || b["a"] != 10 || b["b"] != 7 {
		t.Fatalf("got %v, %v", b, err)
	}
	err = b.check(budgets{"a": 11, "b": 7, "new": 5})
	if want := "a has 11 lines of code, and a budget of 10\nnew has 5 lines of code and no budget"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := b.check(budgets{"a": 10, "b": 6}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("many internal/graph\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readBudgets(name); err == nil {
		t.Error("a budget that is no number is read")
	}
}
