package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// module is the path of the project.
const module = "github.com/espalier-project/espalier/"

// comments are the comments of the fields of configurations: text and markers, by package, type and field.
type comments map[string]comment

type comment struct {
	text string
	// markers are the validation markers of kubebuilder that schemas support: Enum, Minimum, Maximum, Pattern.
	markers map[string]string
}

func readComments(root string) (comments, error) {
	all := comments{}
	files, err := filepath.Glob(filepath.Join(root, "api/config/*/v1alpha1/*.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no configurations in %s", root)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						all[module+filepath.ToSlash(folder)+"."+spec.Name.Name+"."+name.Name] = parse(field.Doc)
					}
				}
			}
			return false
		})
	}
	return all, nil
}

func parse(doc *ast.CommentGroup) comment {
	c := comment{markers: map[string]string{}}
	if doc == nil {
		return c
	}
	var lines []string
	for _, line := range strings.Split(doc.Text(), "\n") {
		line = strings.TrimSpace(line)
		if marker, found := strings.CutPrefix(line, "+kubebuilder:validation:"); found {
			key, value, _ := strings.Cut(marker, "=")
			c.markers[key] = value
		} else if line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	c.text = strings.Join(lines, " ")
	return c
}

func (c comments) of(t reflect.Type, field reflect.StructField) comment {
	return c[t.PkgPath()+"."+t.Name()+"."+field.Name]
}

// add adds the text and the markers of a comment to the schema of its field.
func (c comment) add(schema map[string]any) error {
	if c.text != "" {
		schema["description"] = c.text
	}
	for key, value := range c.markers {
		switch key {
		case "Enum":
			var values []any
			for _, v := range strings.Split(value, ";") {
				values = append(values, v)
			}
			schema["enum"] = append(values, "")
		case "Minimum", "Maximum":
			number, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			schema[strings.ToLower(key)] = number
		case "Pattern":
			schema["pattern"] = value
		default:
			return fmt.Errorf("schemas know no marker %s", key)
		}
	}
	return nil
}
