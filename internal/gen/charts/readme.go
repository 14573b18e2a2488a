package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The table of values stands between these lines of a README; the rest is written by hand.
const (
	tableBegins = "<!-- values: generated from values.yaml -->"
	tableEnds   = "<!-- end of values -->"
)

// readme is the README of a chart with the table of its values.
func readme(chart string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		return nil, err
	}
	before, rest, found := strings.Cut(string(content), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		return nil, errors.New("README.md has no place for the table of values")
	}
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	document := yaml.Node{}
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(before + tableBegins + "\n\n| value | default | meaning |\n|---|---|---|\n")
	if err := printValues(&b, document.Content[0], ""); err != nil {
		return nil, err
	}
	b.WriteString("\n" + tableEnds + after)
	return []byte(b.String()), nil
}

// printValues writes a row for each value: of a section whose values are explained, one for each of these.
func printValues(b *strings.Builder, section *yaml.Node, path string) error {
	for i := 0; i < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		name, meaning := path+key.Value, explanation(key)
		if explains(value) {
			if meaning != "" {
				fmt.Fprintf(b, "| `%s` | | %s |\n", name, meaning)
			}
			if err := printValues(b, value, name+"."); err != nil {
				return err
			}
			continue
		}
		if meaning == "" {
			return fmt.Errorf("values.yaml does not explain %s", name)
		}
		var v any
		if err := value.Decode(&v); err != nil {
			return err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", name, text, meaning)
	}
	return nil
}

// explains reports whether a section has an explained value, at any depth.
func explains(section *yaml.Node) bool {
	if section.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(section.Content); i += 2 {
		if explanation(section.Content[i]) != "" || explains(section.Content[i+1]) {
			return true
		}
	}
	return false
}

func explanation(key *yaml.Node) string {
	var lines []string
	for _, line := range strings.Split(key.HeadComment, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "#")); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`)
}
