package process

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	shared "github.com/espalier-project/espalier/api/config/shared/v1alpha1"
)

// configLines knows on which lines of a configuration file its keys are.
type configLines struct {
	root *yaml.Node
	// duplicates are keys that are there before, with their line and that of the first.
	duplicates []duplicate
	aliases    []shared.Alias
	printed    map[string]string
}

type duplicate struct {
	path        string
	line, first int
}

// newConfigLines reads a file. A file that is no YAML has no lines.
func newConfigLines(content []byte, format FileFormat) *configLines {
	l := &configLines{aliases: format.Aliases, printed: format.Printed}
	document := &yaml.Node{}
	if err := yaml.Unmarshal(content, document); err == nil && len(document.Content) == 1 {
		l.root = document.Content[0]
		l.findDuplicates(l.root, "")
	}
	return l
}

func (l *configLines) findDuplicates(node *yaml.Node, path string) {
	switch node.Kind {
	case yaml.MappingNode:
		first := map[string]int{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			below := strings.TrimPrefix(path+"."+key.Value, ".")
			if line, found := first[key.Value]; found {
				l.duplicates = append(l.duplicates, duplicate{below, key.Line, line})
			} else {
				first[key.Value] = key.Line
			}
			l.findDuplicates(node.Content[i+1], below)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			l.findDuplicates(item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// of returns the line of a key, or of the nearest existing key above it; 1 if there is none. The key may be there
// under an older name.
func (l *configLines) of(path string) int {
	line, depth := l.walk(path)
	for _, alias := range l.aliases {
		for from, to := range map[string]string{alias.New: alias.Old, alias.Old: alias.New} {
			rest, below := strings.CutPrefix(path, from)
			if from == "" || to == "" || !below || rest != "" && rest[0] != '.' && rest[0] != '[' {
				continue
			}
			if otherLine, otherDepth := l.walk(to + rest); otherDepth > depth {
				line, depth = otherLine, otherDepth
			}
		}
	}
	return line
}

// walk follows a path as far as it leads; it returns the line of the last key and how many were found.
func (l *configLines) walk(path string) (line, depth int) {
	line = 1
	node := l.root
	for _, step := range steps(path) {
		next, at := l.child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
		depth++
	}
	return line, depth
}

func (l *configLines) child(node *yaml.Node, step string) (*yaml.Node, int) {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case node == nil:
	case node.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i].Line
		}
	case node.Kind == yaml.MappingNode:
		for _, name := range []string{step, l.printed[step]} {
			// The last one counts, as for the decoder.
			for i := len(node.Content) - 2; i >= 0; i -= 2 {
				if name != "" && node.Content[i].Value == name {
					return node.Content[i+1], node.Content[i].Line
				}
			}
		}
	}
	return nil, 0
}

// steps splits a path such as a.b[0].c[some.key].
func steps(path string) []string {
	var result []string
	for path != "" {
		if path[0] == '[' {
			key, rest, _ := strings.Cut(path[1:], "]")
			result, path = append(result, key), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		result = append(result, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return result
}

var yamlLine = regexp.MustCompile(`yaml: line (\d+)`)

// lineOf returns the line that a parser names in its error.
func lineOf(err error) int {
	if match := yamlLine.FindStringSubmatch(err.Error()); match != nil {
		if line, err := strconv.Atoi(match[1]); err == nil {
			return line
		}
	}
	return 1
}
