// configdoc writes the reference page of an executable's configuration from the comments of its types.
//
//	configdoc <root of the repository> <executable> > page
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

type structs map[string]*ast.TypeSpec

// kinds are the kinds of configuration files; each executable has one, in a folder and an API group of its name without dashes.
var kinds = map[string]string{
	"resource-manager":      "ResourceManagerConfiguration",
	"admission-controller":  "AdmissionControllerConfiguration",
	"node-agent-authorizer": "NodeAgentAuthorizerConfiguration",
}

func main() {
	if len(os.Args) != 3 || kinds[os.Args[2]] == "" {
		fmt.Fprintln(os.Stderr, "usage: configdoc <root of the repository> <executable>")
		os.Exit(2)
	}
	executable := os.Args[2]
	short := strings.ReplaceAll(executable, "-", "")
	known := structs{}
	for prefix, folder := range map[string]string{"": "api/config/" + short + "/v1alpha1", "shared.": "api/config/shared/v1alpha1"} {
		if err := known.readFolder(filepath.Join(os.Args[1], folder), prefix); err != nil {
			fmt.Fprintln(os.Stderr, "configdoc:", err)
			os.Exit(1)
		}
	}
	fmt.Println("# Configuration of " + executable)
	fmt.Println()
	fmt.Println("Generated from the types; `make generate` updates it. A file starts with")
	fmt.Println()
	fmt.Println("```yaml")
	fmt.Println("apiVersion: " + short + ".config.gardener.cloud/v1alpha1")
	fmt.Println("kind: " + kinds[executable])
	fmt.Println("```")
	fmt.Println()
	fmt.Println("| field | type | meaning |")
	fmt.Println("|---|---|---|")
	known.print(kinds[executable], "", "")
}

// readFolder reads the types of a package.
func (s structs) readFolder(folder, prefix string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if err := s.read(file, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (s structs) read(file, prefix string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if typeSpec, ok := spec.(*ast.TypeSpec); ok {
				s[prefix+typeSpec.Name.Name] = typeSpec
			}
		}
	}
	return nil
}

// print writes a row a field, those of structs below it.
func (s structs) print(name, prefix, path string) {
	structType, ok := s[name].Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structType.Fields.List {
		tag := ""
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		jsonName, _, _ := strings.Cut(tag, ",")
		typeName := typeOf(field.Type)
		element, isList := strings.CutPrefix(strings.TrimPrefix(typeName, "*"), "[]")
		target := s.find(element, prefix)
		if jsonName == "" {
			if target != "" {
				s.print(target, prefixOf(target), path)
			}
			continue
		}
		fmt.Printf("| `%s` | %s | %s |\n", path+jsonName, display(typeName, target), text(field.Doc))
		if target != "" {
			below := path + jsonName
			if isList {
				below += "[]"
			}
			s.print(target, prefixOf(target), below+".")
		}
	}
}

func (s structs) find(name, prefix string) string {
	for _, candidate := range []string{name, prefix + name} {
		if spec, found := s[candidate]; found {
			if _, isStruct := spec.Type.(*ast.StructType); isStruct {
				return candidate
			}
		}
	}
	return ""
}

func prefixOf(name string) string {
	if prefix, _, found := strings.Cut(name, "."); found {
		return prefix + "."
	}
	return ""
}

func typeOf(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + typeOf(e.X)
	case *ast.SelectorExpr:
		return typeOf(e.X) + "." + e.Sel.Name
	case *ast.ArrayType:
		return "[]" + typeOf(e.Elt)
	case *ast.MapType:
		return "map[" + typeOf(e.Key) + "]" + typeOf(e.Value)
	}
	return "?"
}

func display(typeName, target string) string {
	typeName = strings.TrimPrefix(typeName, "*")
	if target != "" && strings.HasPrefix(typeName, "[]") {
		return "[]object"
	}
	if target != "" {
		return "object"
	}
	for from, to := range map[string]string{"metav1.": "", "corev1.": "", "float32": "number", "int64": "integer", "int32": "integer", "int": "integer", "bool": "boolean"} {
		if typeName == from || strings.HasSuffix(from, ".") {
			typeName = strings.ReplaceAll(typeName, from, to)
		}
	}
	return typeName
}

func text(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	var lines []string
	for _, line := range strings.Split(doc.Text(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(strings.Join(lines, " "))
}
