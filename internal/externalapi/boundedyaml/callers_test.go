package boundedyaml

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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
	"gopkg.in/yaml.v2":                                {"*"},
	"gopkg.in/yaml.v3":                                {"*"},
	"sigs.k8s.io/yaml/goyaml.v2":                      {"*"},
	"sigs.k8s.io/yaml/goyaml.v3":                      {"*"},
}

// methods are decoders whose package does not show where they are called.
var methods = []string{"UniversalDecoder", "UniversalDeserializer", "UniversalStrictDecoder"}

// own are the files that decode what the operator, or the project itself, has written.
var own = map[string]string{
	"internal/externalapi/boundedyaml/":          "this package",
	"internal/managedresource/decode/stream.go":  "has the same bounds for many documents, Brotli and a budget for all (MR-7)",
	"internal/process/config.go":                 "the process's configuration",
	"internal/process/configlines.go":            "the process's configuration",
	"internal/process/effective.go":              "what the process has printed itself",
	"internal/process/restconfig.go":             "the process's kubeconfig",
	"internal/gen/docs/":                         "profiles of the project",
	"internal/gen/charts/":                       "charts of the project",
	"internal/kubectl/complete.go":               "the user's own kubeconfig",
	"internal/kubectl/connection.go":             "the user's own kubeconfig",
	"internal/executable/explaining/source.go":   "the user's own kubeconfig",
	"internal/shadow/write.go":                   "what the clients of this process have encoded",
	"internal/endpoint/admission/admissiontest/": "tests",
}

// TestNoOtherDecoder: foreign YAML is decoded here, and nowhere else (T3-6).
func TestNoOtherDecoder(t *testing.T) {
	used := map[string]bool{}
	for _, folder := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("../../..", folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "tools":
				return filepath.SkipDir // Modules of their own, which no executable has.
			case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			name, err := filepath.Rel("../../..", path)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			for _, call := range callsOf(t, path) {
				reason := ownFile(name)
				used[reason] = true
				if reason == "" {
					t.Errorf("T3-6/%s decodes YAML by %s; foreign YAML is decoded by package boundedyaml, and what the operator wrote is listed here", name, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for prefix := range own {
		if !used[prefix] {
			t.Errorf("%s decodes no YAML, and needs no place in the list", prefix)
		}
	}
}

func ownFile(name string) string {
	for prefix := range own {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// callsOf returns the decoders that a file names.
func callsOf(t *testing.T, path string) (calls []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{}
	for _, i := range file.Imports {
		of, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		alias := filepath.Base(of)
		if strings.HasPrefix(of, "go.yaml.in/yaml/") {
			alias = "yaml"
		}
		if i.Name != nil {
			alias = i.Name.Name
		}
		imported[alias] = of
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if option, is := n.(*ast.KeyValueExpr); is {
			if key, is := option.Key.(*ast.Ident); is && key.Name == "Yaml" {
				calls = append(calls, "a serializer of YAML")
			}
		}
		selector, is := n.(*ast.SelectorExpr)
		if !is {
			return true
		}
		for _, method := range methods {
			if selector.Sel.Name == method {
				calls = append(calls, method)
			}
		}
		of, is := selector.X.(*ast.Ident)
		if !is {
			return true
		}
		for _, function := range decoders[imported[of.Name]] {
			if function == "*" || function == selector.Sel.Name {
				calls = append(calls, of.Name+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return calls
}
