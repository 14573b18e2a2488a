// layers checks imports: a package may import packages of lower layers, and of its own layer only what the table in layers.go allows.
// A package without a layer fails. Test files may import from higher layers.
//
//	layers <root of the repository>
package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layers <root of the repository>")
		os.Exit(2)
	}
	if err := check(os.Args[1], layers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns an error for every forbidden import, and for every folder of the table that does not exist.
func check(root string, layers []layer) error {
	var problems []error
	for _, f := range layers {
		for _, folder := range slices.Concat(f.folders, f.shared) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(folder, "/...")))); err != nil {
				problems = append(problems, fmt.Errorf("the layer %s has no folder %s: %w", f.name, folder, err))
			}
		}
	}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(file, "go.mod")); file != root && (err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		imports, err := importsOf(file)
		if err != nil {
			return err
		}
		problems = append(problems, problemsOf(layers, filepath.ToSlash(relative), imports)...)
		return nil
	})
	return errors.Join(append(problems, err)...)
}

func importsOf(file string) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, i := range parsed.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, name)
	}
	return all, nil
}

// problemsOf returns the forbidden imports of a file.
func problemsOf(layers []layer, file string, imports []string) []error {
	from := path.Dir(file)
	at := level(layers, from)
	if at < 0 {
		return []error{fmt.Errorf("%s: %s is in no layer; add it to internal/tools/layers/layers.go", file, from)}
	}
	var problems []error
	for _, name := range imports {
		if why := layers[at].refuses(layers, at, from, name); why != "" {
			problems = append(problems, fmt.Errorf("%s imports %s: %s", file, name, why))
		}
	}
	return problems
}

// refuses returns the reason why a package of the layer may not import another one; empty means that it may.
func (f *layer) refuses(layers []layer, at int, from, name string) string {
	to, ours := strings.CutPrefix(name, module)
	if !ours {
		if slices.ContainsFunc(f.without, within(name)) && !slices.ContainsFunc(f.except, within(name)) {
			return "the layer " + f.name + " may not import it"
		}
		return ""
	}
	there := level(layers, to)
	switch {
	case there < 0:
		return "it is in no layer"
	case there > at:
		return fmt.Sprintf("the layer %s may not import from the higher layer %s", f.name, layers[there].name)
	case there < at || f.together || slices.Contains(f.shared, to) || strings.HasPrefix(to, from+"/"):
		return ""
	}
	return "packages of the layer " + f.name + " do not import each other; move what they share to a lower layer"
}

// within reports whether a package is the given one or below it.
func within(name string) func(string) bool {
	return func(prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }
}

// level returns the index of the layer of a folder, -1 for none.
func level(layers []layer, folder string) int {
	return slices.IndexFunc(layers, func(f layer) bool {
		return slices.ContainsFunc(f.folders, func(pattern string) bool {
			below, all := strings.CutSuffix(pattern, "/...")
			return folder == below || all && strings.HasPrefix(folder, below+"/")
		})
	})
}
