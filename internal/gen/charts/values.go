package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkValues returns an error for a value of values.yaml without a comment: helm show values prints the comments as the reference.
func checkValues(values []byte) error {
	document := yaml.Node{}
	if err := yaml.Unmarshal(values, &document); err != nil {
		return err
	}
	return checkSection(document.Content[0], "")
}

// checkSection checks each value, and each value of a section with comments inside.
func checkSection(section *yaml.Node, path string) error {
	for i := 0; i < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		name := path + key.Value
		if explains(value) {
			if err := checkSection(value, name+"."); err != nil {
				return err
			}
		} else if key.HeadComment == "" {
			return fmt.Errorf("values.yaml does not explain %s", name)
		}
	}
	return nil
}

// explains reports whether a section has an explained value, at any depth.
func explains(section *yaml.Node) bool {
	if section.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(section.Content); i += 2 {
		if section.Content[i].HeadComment != "" || explains(section.Content[i+1]) {
			return true
		}
	}
	return false
}
