package process

import (
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// printEffective prints every key of a configuration. A comment next to each value names the origin of the value; next to a key that is not set it
// names the default that follows from something else.
func printEffective(out io.Writer, cfg any, layers []layer) error {
	text, err := kyaml.Marshal(cfg)
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return err
	}
	for _, root := range document.Content {
		complete(root, reflect.TypeOf(cfg))
		annotate(root, nil, layers)
	}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return err
	}
	return encoder.Close()
}

// annotate writes origins next to scalars, and next to the keys of lists and empty sections. The kind of the file has none.
func annotate(section *yaml.Node, path []string, layers []layer) {
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		at := slices.Concat(path, []string{key.Value})
		switch {
		case value.LineComment != "":
		case len(path) == 0 && (key.Value == "apiVersion" || key.Value == "kind"):
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			annotate(value, at, layers)
		case value.Kind == yaml.SequenceNode && len(value.Content) > 0:
			key.LineComment = originOf(layers, at)
		default:
			value.LineComment = originOf(layers, at)
		}
	}
}

// complete adds the keys of a type that are not set, as null, and sorts all keys.
func complete(section *yaml.Node, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || section.Kind != yaml.MappingNode {
		return
	}
	set := map[string]*yaml.Node{}
	for i := 0; i+1 < len(section.Content); i += 2 {
		set[section.Content[i].Value] = section.Content[i+1]
	}
	docs := map[string]string{}
	if documented, is := reflect.New(of).Interface().(interface{ SwaggerDoc() map[string]string }); is {
		docs = documented.SwaggerDoc()
	}
	for _, field := range reflect.VisibleFields(of) {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case key == "" || key == "-":
		case set[key] != nil:
			complete(set[key], field.Type)
		default:
			reason := strings.TrimSpace("not set. " + statedDefault.FindString(docs[key]))
			section.Content = append(section.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null", LineComment: reason})
		}
	}
	pairs := slices.Collect(slices.Chunk(section.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return strings.Compare(a[0].Value, b[0].Value) })
	section.Content = slices.Concat(pairs...)
}

// statedDefault finds the default in the comment of a field.
var statedDefault = regexp.MustCompile(`\bDefault\b.*`)
