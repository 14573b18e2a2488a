package boundedyaml

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// decoders are functions that decode YAML without a bound, by package and name.
var decoders = map[string][]string{
	"sigs.k8s.io/yaml":                                {"Unmarshal", "UnmarshalStrict", "YAMLToJSON", "YAMLToJSONStrict"},
	"go.yaml.in/yaml/v2":                              {"Unmarshal", "UnmarshalStrict", "NewDecoder"},
	"go.yaml.in/yaml/v3":                              {"Unmarshal", "NewDecoder"},
	"k8s.io/apimachinery/pkg/util/yaml":               {"*"},
	"k8s.io/client-go/tools/clientcmd":                {"*"},
	"k8s.io/client-go/tools/clientcmd/api/latest":     {"Codec"},
	"k8s.io/apimachinery/pkg/runtime/serializer/json": {"NewYAMLSerializer"},
	"encoding/gob":                                    {"NewDecoder"},
	"gopkg.in/yaml.v2":                                {"*"},
	"gopkg.in/yaml.v3":                                {"*"},
	"sigs.k8s.io/yaml/goyaml.v2":                      {"*"},
	"sigs.k8s.io/yaml/goyaml.v3":                      {"*"},
}

// methods are decoders whose package does not show where they are called.
var methods = []string{"UniversalDecoder", "UniversalDeserializer", "UniversalStrictDecoder"}

// own are the functions that decode what the operator, or the project itself, has written, or that have a bound of their own.
var own = map[string]string{
	"internal/commandline/nodeagentauthorizer.fromResourceManager":     "the process's configuration",
	"internal/executable/admissioncontroller.gardenCluster.restConfig": "the user's own kubeconfig",
	"internal/gen/charts.checkValues":                                  "charts of the project",
	"internal/gen/charts.executable.schema":                            "charts of the project",
	"internal/gen/charts.executable.write":                             "charts of the project",
	"internal/gen/charts.rulesOf":                                      "charts of the project",
	"internal/gen/docs.decoded":                                        "profiles of the project",
	"internal/kubectl.access.add":                                      "only the flags of a kubeconfig",
	"internal/kubectl.access.load":                                     "the user's own kubeconfig",
	"internal/kubectl.access.rules":                                    "the user's own kubeconfig",
	"internal/managedresource/decode.part.checkSyntax":                 "has the same bounds for many documents, Brotli and a budget for all (MR-7)",
	"internal/managedresource/decode.part.yamlDocument":                "has the same bounds for many documents, Brotli and a budget for all (MR-7)",
	"internal/process.ConfigFlags.decode":                              "the process's configuration",
	"internal/process.ConfigFlags.valuesBelow":                         "the process's configuration",
	"internal/process.DecodeConfig":                                    "the process's configuration",
	"internal/process.validation.check":                                "the process's configuration",
	"internal/process.checked":                                         "a kubeconfig that is decoded already",
	"internal/process.decodeFile":                                      "the process's configuration",
	"internal/process.decodeMap":                                       "the process's configuration",
	"internal/process.decodeOver":                                      "the process's configuration",
	"internal/process.documents":                                       "the process's configuration",
	"internal/process.notEmpty":                                        "the process's configuration",
	"internal/process.readDefaults":                                    "the process's configuration",
	"internal/dryrun.bodyOf":                                           "what the clients of this process have encoded",
}

// module is the path of the project.
const module = "github.com/espalier-project/espalier/"

// function is a function of the project with the decoders that it names.
type function struct {
	folder, name string
	calls        []string
	// content says that the function is given bytes or a reader.
	content bool
}

func (f function) id() string { return f.folder + "." + f.name }

// TestNoOtherDecoder: foreign YAML is decoded here, and nowhere else (T3-6). An excused function that is given content is a decoder itself, so that
// its callers need an excuse of their own.
func TestNoOtherDecoder(t *testing.T) {
	sources := parsed(t)
	all := functions(sources)
	for before := -1; before != len(decoders); {
		before = len(decoders)
		for _, f := range all {
			if own[f.id()] != "" && f.content && len(f.calls) > 0 && !slices.Contains(decoders[module+f.folder], f.name) {
				decoders[module+f.folder] = append(decoders[module+f.folder], f.name)
				before = -1
			}
		}
		all = functions(sources)
	}
	used := map[string]bool{}
	for _, f := range all {
		if len(f.calls) == 0 || f.folder == "internal/externalapi/boundedyaml" {
			continue
		}
		used[f.id()] = true
		if own[f.id()] == "" {
			t.Errorf("T3-6/%s decodes YAML by %s; foreign YAML is decoded by package boundedyaml, and functions that decode what the operator wrote are listed here",
				f.id(), strings.Join(slices.Compact(f.calls), ", "))
		}
	}
	for name := range own {
		expect.True(t, used[name], "T3-6/%s is no function that decodes YAML, and needs no place in the list", name)
	}
}

// source is a file with its folder and the packages that it imports, by name.
type source struct {
	folder   string
	file     *ast.File
	imported map[string]string
}

// parsed returns the files of the executables.
func parsed(t *testing.T) (sources []source) {
	t.Helper()
	for _, folder := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "tools" || entry.Name() == "admissiontest" || entry.Name() == "yamltest"):
				return filepath.SkipDir // No executable has them.
			case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel("../../..", filepath.Dir(name))
			if err != nil {
				return err
			}
			imported, err := importsOf(file)
			if err != nil {
				return err
			}
			sources = append(sources, source{filepath.ToSlash(relative), file, imported})
			return nil
		})
		must.Succeed(t, err)
	}
	return sources
}

// importsOf returns the packages that a file imports, by name.
func importsOf(file *ast.File) (map[string]string, error) {
	imported := map[string]string{}
	for _, i := range file.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		alias := path.Base(of)
		if strings.HasPrefix(of, "go.yaml.in/yaml/") || strings.HasPrefix(of, "gopkg.in/yaml.") {
			alias = "yaml"
		}
		if i.Name != nil {
			alias = i.Name.Name
		}
		imported[alias] = of
	}
	return imported, nil
}

// functions returns all functions, and the variables of packages, with the decoders that they name.
func functions(sources []source) (all []function) {
	for _, s := range sources {
		for _, declaration := range s.file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				f := function{folder: s.folder, name: d.Name.Name, calls: s.calls(d), content: takesContent(d.Type)}
				if d.Recv != nil {
					f.name = receiver(d.Recv.List[0].Type) + "." + f.name
				}
				all = append(all, f)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, is := spec.(*ast.ValueSpec); is {
						all = append(all, function{folder: s.folder, name: v.Names[0].Name, calls: s.calls(v)})
					}
				}
			}
		}
	}
	return all
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// takesContent reports whether a function is given bytes or a reader.
func takesContent(t *ast.FuncType) bool {
	return slices.ContainsFunc(t.Params.List, func(p *ast.Field) bool {
		switch of := p.Type.(type) {
		case *ast.ArrayType:
			element, is := of.Elt.(*ast.Ident)
			return is && element.Name == "byte"
		case *ast.SelectorExpr:
			return of.Sel.Name == "Reader" || of.Sel.Name == "RawMessage"
		}
		return false
	})
}

// calls returns the decoders that a declaration names.
func (s source) calls(declaration ast.Node) (calls []string) {
	ast.Inspect(declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && key.Name == "Yaml" {
				calls = append(calls, "a serializer of YAML")
			}
		case *ast.CallExpr:
			if called, is := n.Fun.(*ast.Ident); is && slices.Contains(decoders[module+s.folder], called.Name) {
				calls = append(calls, called.Name)
			}
		case *ast.SelectorExpr:
			if slices.Contains(methods, n.Sel.Name) {
				calls = append(calls, n.Sel.Name)
			}
			if of, is := n.X.(*ast.Ident); is {
				if found := decoders[s.imported[of.Name]]; slices.Contains(found, "*") || slices.Contains(found, n.Sel.Name) {
					calls = append(calls, of.Name+"."+n.Sel.Name)
				}
			}
		}
		return true
	})
	return calls
}

// TestCallsAreSeen: each form of a call is seen, with the function that has it.
func TestCallsAreSeen(t *testing.T) {
	const text = `package p
import ("encoding/gob"; "sigs.k8s.io/yaml"; other "go.yaml.in/yaml/v3"; "k8s.io/apimachinery/pkg/runtime/serializer/json")
var eager = yaml.Unmarshal
func (r *reader[T]) Read(raw []byte) { func() { _ = other.Unmarshal(raw, nil) }() }
func stream(r io.Reader) { gob.NewDecoder(r) }
func codec() { _ = json.SerializerOptions{Yaml: true} }
func none(name string) { yaml.Marshal(name) }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	must.Succeed(t, err)
	imported, err := importsOf(file)
	must.Succeed(t, err)
	var got []string
	for _, f := range functions([]source{{"p", file, imported}}) {
		if len(f.calls) > 0 {
			got = append(got, fmt.Sprint(f.id(), f.calls, f.content))
		}
	}
	want := []string{"p.eager[yaml.Unmarshal] false", "p.reader.Read[other.Unmarshal] true", "p.stream[gob.NewDecoder] true", "p.codec[a serializer of YAML] false"}
	expect.DeepEqual(t, got, want, "T3-6")
}
