// floors holds the house up: an import never goes up, nor sideways between two rooms of a floor, unless the table in floors.go says that
// the room is shared. A package without a place in the table fails. Test files may import from above.
//
//	floors <root of the repository>
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
		fmt.Fprintln(os.Stderr, "usage: floors <root of the repository>")
		os.Exit(2)
	}
	if err := check(os.Args[1], house); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check returns an error for every import that goes where it must not, and for every room that there is not.
func check(root string, house []floor) error {
	var problems []error
	for _, f := range house {
		for _, room := range slices.Concat(f.rooms, f.shared) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(room, "/...")))); err != nil {
				problems = append(problems, fmt.Errorf("the floor %s has no room %s: %w", f.name, room, err))
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
		problems = append(problems, judge(house, filepath.ToSlash(relative), imports)...)
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

// judge returns what is wrong with the imports of a file.
func judge(house []floor, file string, imports []string) []error {
	from := path.Dir(file)
	at := level(house, from)
	if at < 0 {
		return []error{fmt.Errorf("%s: %s has no place in the house; give it one in internal/tools/floors/floors.go", file, from)}
	}
	var problems []error
	for _, name := range imports {
		if why := house[at].refuses(house, at, from, name); why != "" {
			problems = append(problems, fmt.Errorf("%s imports %s: %s", file, name, why))
		}
	}
	return problems
}

// refuses says why what is on the floor may not import a package; empty means that it may.
func (f *floor) refuses(house []floor, at int, from, name string) string {
	to, ours := strings.CutPrefix(name, module)
	if !ours {
		if slices.ContainsFunc(f.without, within(name)) && !slices.ContainsFunc(f.except, within(name)) {
			return "it has no place on the floor " + f.name
		}
		return ""
	}
	there := level(house, to)
	switch {
	case there < 0:
		return "it has no place in the house"
	case there > at:
		return fmt.Sprintf("an import never goes up, from %s to %s", f.name, house[there].name)
	case there < at || f.together || slices.Contains(f.shared, to) || strings.HasPrefix(to, from+"/"):
		return ""
	}
	return "what two rooms of the floor " + f.name + " need moves down"
}

// within reports whether a package is the given one or below it.
func within(name string) func(string) bool {
	return func(prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+"/") }
}

// level is the floor of a folder, -1 for none.
func level(house []floor, folder string) int {
	return slices.IndexFunc(house, func(f floor) bool {
		return slices.ContainsFunc(f.rooms, func(room string) bool {
			below, all := strings.CutSuffix(room, "/...")
			return folder == below || all && strings.HasPrefix(folder, below+"/")
		})
	})
}
