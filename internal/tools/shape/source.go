package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// file is a source file that is neither a test nor generated.
type file struct {
	path    string // relative to the root, with slashes
	content []byte
	tree    *ast.File
}

// codeBase are the source files of the product.
type codeBase []file

// read parses the product's source files below a root.
func read(root string) (codeBase, error) {
	var all codeBase
	positions := token.NewFileSet()
	for _, top := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || entry.Name() == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated") {
				return nil
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			tree, err := parser.ParseFile(positions, name, content, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			all = append(all, file{filepath.ToSlash(relative), content, tree})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// testLines counts all lines of tests, and of the packages in test.
func testLines(root string) (lines int, err error) {
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil || !strings.HasSuffix(name, ".go") || !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(filepath.ToSlash(relative), "test/") {
			return err
		}
		content, err := os.ReadFile(name)
		lines += bytes.Count(content, []byte("\n"))
		return err
	})
	return lines, err
}

// below returns the files of a folder and of the folders in it.
func (c codeBase) below(folder string) []file {
	return slices.DeleteFunc(slices.Clone(c), func(f file) bool { return !strings.HasPrefix(f.path, folder+"/") })
}

func sum(files []file, count func(file) int) int {
	total := 0
	for _, f := range files {
		total += count(f)
	}
	return total
}

// codeLines counts the lines that have a token.
func codeLines(f file) int {
	var s scanner.Scanner
	positions := token.NewFileSet()
	at := positions.AddFile("", -1, len(f.content))
	s.Init(at, f.content, nil, 0)
	lines := map[int]struct{}{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := at.Line(pos)
		for i := range 1 + strings.Count(literal, "\n") {
			lines[first+i] = struct{}{}
		}
	}
}

func wideLines(f file) int {
	wide := 0
	for line := range bytes.Lines(f.content) {
		if len([]rune(string(line))) > 121 { // with the line feed
			wide++
		}
	}
	return wide
}

// methods counts the exported methods of files.
func methods(files []file) int {
	return sum(files, func(f file) (count int) {
		for _, declaration := range f.tree.Decls {
			if function, is := declaration.(*ast.FuncDecl); is && function.Recv != nil && function.Name.IsExported() {
				count++
			}
		}
		return count
	})
}

// converting matches conversions of an ID to another ID; making matches functions that make an ID from an object, or
// from an entry of an inventory.
var (
	converting = regexp.MustCompile(`\.Scoped\(`)
	making     = regexp.MustCompile(`\b(EntriesOf|IDOf|IDOfEntry|NewID|RefOf|idsOf|refsOf)\(`)
)

// linesWith counts the lines of code that match.
func linesWith(files []file, pattern *regexp.Regexp) int {
	return sum(files, func(f file) (count int) {
		for line := range bytes.Lines(f.content) {
			if pattern.Match(line) && !bytes.HasPrefix(bytes.TrimSpace(line), []byte("//")) {
				count++
			}
		}
		return count
	})
}

func fieldsOf(is func(ast.Expr) bool) func(file) int {
	return func(f file) (count int) {
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if structure, found := node.(*ast.StructType); found {
				for _, field := range structure.Fields.List {
					if is(field.Type) {
						count += max(1, len(field.Names))
					}
				}
			}
			return true
		})
		return count
	}
}

// widest returns the number of fields of the struct with a name that has most.
func widest(files []file, name string) (fields int) {
	for _, f := range files {
		ast.Inspect(f.tree, func(node ast.Node) bool {
			if declared, is := node.(*ast.TypeSpec); is && declared.Name.Name == name {
				if structure, is := declared.Type.(*ast.StructType); is {
					fields = max(fields, structure.Fields.NumFields())
				}
			}
			return true
		})
	}
	return fields
}

// sentinels counts the variables of a file's package that are made by errors.New.
func sentinels(f file) (count int) {
	for _, declaration := range f.tree.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is || general.Tok != token.VAR {
			continue
		}
		for _, spec := range general.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				if call, is := value.(*ast.CallExpr); is && isSelector(call.Fun, "errors", "New") {
					count++
				}
			}
		}
	}
	return count
}

func isSelector(e ast.Expr, of, name string) bool {
	selector, is := e.(*ast.SelectorExpr)
	if !is || selector.Sel.Name != name {
		return false
	}
	identifier, is := selector.X.(*ast.Ident)
	return is && identifier.Name == of
}

// receivers returns the number of methods of the type that has most, in one package.
func receivers(files []file) (most int) {
	methods := map[[2]string]int{}
	for _, f := range files {
		for _, declaration := range f.tree.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if !is || function.Recv == nil {
				continue
			}
			of := function.Recv.List[0].Type
			if pointer, is := of.(*ast.StarExpr); is {
				of = pointer.X
			}
			if identifier, is := of.(*ast.Ident); is {
				key := [2]string{path.Dir(f.path), identifier.Name}
				methods[key]++
				most = max(most, methods[key])
			}
		}
	}
	return most
}

func isMap(e ast.Expr) bool {
	_, is := e.(*ast.MapType)
	return is
}

func isMutex(e ast.Expr) bool {
	if pointer, is := e.(*ast.StarExpr); is {
		e = pointer.X
	}
	selector, is := e.(*ast.SelectorExpr)
	return is && (selector.Sel.Name == "Mutex" || selector.Sel.Name == "RWMutex")
}

// watchers counts the folders that read the events of a watch themselves.
func (c codeBase) watchers() int {
	folders := map[string]struct{}{}
	for _, f := range c {
		if bytes.Contains(f.content, []byte(".ResultChan()")) {
			folders[path.Dir(f.path)] = struct{}{}
		}
	}
	return len(folders)
}

// own are the words for which the field has a term; a part of an identifier is compared without regard to case and to a plural.
var own = map[string]string{
	"acquit": "unmark", "acquitted": "unmarked", "condemn": "mark for deletion", "condemned": "marked for deletion", "crowd": "admission buffer",
	"dirty": "out of sync", "doubt": "out of sync", "elsewhere": "in another namespace", "fate": "outcome", "finding": "object",
	"former": "previous", "guest": "request", "heed": "check", "heeded": "checked", "heir": "next owner", "keeper": "owner",
	"law": "property", "ledger": "objects", "livefallback": "read-through", "looked": "read", "looks": "reads", "news": "events",
	"patient": "queued", "piece": "work item", "rehearsal": "dry run", "room": "space", "settle": "complete", "settled": "complete",
	"sighting": "observation", "spared": "unmarked", "special": "exception", "stale": "out of sync", "stray": "orphan",
	"suspect": "out of sync", "tell": "report", "tells": "reports", "told": "reported", "trail": "write log", "unsure": "out of sync",
	"untold": "unreported", "verdict": "health status, decision",
}

// ownWords returns "<file>:<line> <identifier>: <term of the field>" for the first declaration in a folder of each identifier with a word of
// our own, sorted.
func (c codeBase) ownWords() []string {
	found := map[[2]string]string{}
	for _, f := range c.below("internal") { // api has the names of the contract.
		for _, identifier := range declared(f.tree) {
			key := [2]string{path.Dir(f.path), identifier.Name}
			if term := ownWord(identifier.Name); term != "" && found[key] == "" {
				line := 1 + bytes.Count(f.content[:identifier.Pos()-f.tree.FileStart], []byte("\n"))
				found[key] = fmt.Sprintf("%s:%d %s: %s", f.path, line, identifier.Name, term)
			}
		}
	}
	return slices.Sorted(maps.Values(found))
}

// ownWord returns the term of the field for a word in an identifier, "" if it has no word of our own.
func ownWord(identifier string) string {
	for _, part := range parts(identifier) {
		if term := cmp.Or(own[part], own[strings.TrimSuffix(part, "s")]); term != "" {
			return term
		}
	}
	return ""
}

// declared returns the names that a file declares: types, functions, constants, fields, variables, parameters.
func declared(tree *ast.File) []*ast.Ident {
	names := []*ast.Ident{tree.Name}
	add := func(expressions ...ast.Expr) {
		for _, e := range expressions {
			if identifier, is := e.(*ast.Ident); is {
				names = append(names, identifier)
			}
		}
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}

// parts splits an identifier into its words, in lower case.
func parts(identifier string) []string {
	var words []string
	begin := 0
	runes := []rune(identifier)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) {
			words = append(words, strings.ToLower(string(runes[begin:i])))
			begin = i
		}
	}
	return words
}
