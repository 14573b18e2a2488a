package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const docs = "../../../docs/internals"

// named is a file of the engine, and a function or a type in it, as docs/internals/engine.md and engine-memory.md name them.
var named = regexp.MustCompile("`([a-z_/]+\\.go)` `([A-Za-z]+)`")

// listed is a row of docs/internals/architecture.md about one file.
var listed = regexp.MustCompile("(?m)^\\| `((?:controller|apply|prune|steps|objects|target)/[a-z_]+\\.go)` \\|")

// TestNamesInEngineDocument checks that each file, function and type that the pages about the engine name exists.
func TestNamesInEngineDocument(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "engine.md"))
	must.Succeed(t, err)
	all := named.FindAllStringSubmatch(string(page), -1)
	must.True(t, len(all) != 0, "the document names no function: its form has changed")
	for _, pair := range all {
		file, name := pair[1], pair[2]
		code, err := os.ReadFile(filepath.Join("..", file))
		if os.IsNotExist(err) {
			code, err = os.ReadFile(filepath.Join("../..", file)) // A package of the whole process.
		}
		if err != nil {
			t.Errorf("a page names %s: %v", file, err)
			continue
		}
		declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?` + name + `[(\[]|type ` + name + `\b)`)
		expect.True(t, declared.Match(code), "a page names %s in %s, which declares no such function or type", name, file)
	}
}

// TestFilesInArchitectureDocument checks that docs/internals/architecture.md has one row for each file of these packages.
func TestFilesInArchitectureDocument(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "architecture.md"))
	must.Succeed(t, err)
	rows := map[string]int{}
	for _, row := range listed.FindAllStringSubmatch(string(page), -1) {
		rows[row[1]]++
	}
	for _, folder := range []string{"controller", "apply", "prune", "steps", "objects", "target"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		must.Succeed(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			name := folder + "/" + filepath.Base(file)
			expect.Equal(t, rows[name], 1, "docs/internals/architecture.md has %d rows for %s", rows[name], name)
			delete(rows, name)
		}
	}
	for name := range rows {
		t.Errorf("docs/internals/architecture.md has a row for %s, which is not there", name)
	}
}

// TestMethodsInEngineDocument checks that docs/internals/engine-memory.md names each method of the table of objects, and no other.
func TestMethodsInEngineDocument(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "engine-memory.md"))
	must.Succeed(t, err)
	_, section, found := strings.Cut(string(page), "## What the Tracker is asked\n")
	section, _, _ = strings.Cut(section, "\n## ")
	must.True(t, found, "the document has no such section")
	named := map[string]bool{}
	for _, name := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		named[name[1]] = true
	}
	files, err := filepath.Glob("../objects/*.go")
	must.Succeed(t, err)
	declared := map[string]bool{}
	for _, file := range files {
		code, err := os.ReadFile(file)
		must.Succeed(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, method := range regexp.MustCompile(`(?m)^func \(\w+ \*(Tracker|Observations|Claims|Repairs|ListSession|Ticket)\) ([A-Z]\w*)\(`).FindAllStringSubmatch(string(code), -1) {
			declared[method[2]] = true
			expect.True(t, named[method[2]],
				"docs/internals/engine-memory.md does not name %s of the %s", method[2], method[1])
		}
	}
	for name := range named {
		expect.True(t, declared[name],
			"docs/internals/engine-memory.md names %s, which is no method of the table of objects", name)
	}
}
