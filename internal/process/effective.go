package process

import (
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// printEffective prints a configuration with all defaults; a comment next to each value says where the value comes from.
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
