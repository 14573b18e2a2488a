package boundedyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	yaml2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// maxBytes limits a document, as JSON and with its aliases expanded. A Secret or a ConfigMap has at most 1 MiB.
	maxBytes = 3 << 20
	// maxDepth limits the nesting of a document. The deepest kinds of the API nest some 20 levels.
	maxDepth = 256

	// MaxNodes limits the nodes of a document, with its aliases expanded: scalars, lists and mappings. Counting them
	// in the text overestimates their number up to threefold. A counted node costs up to 600 bytes while a document
	// is decoded, so that no document costs more than 64 MiB.
	MaxNodes = 100_000

	// A document with aliases has to be parsed before its expanded size is known, which costs eight times its text
	// and 600 bytes for each node. Within these limits that is less than two times the text and 4 MiB.
	maxAliasedBytes = 256 << 10
	maxAliasedNodes = 4000
)

// Limit is the error for content that exceeds a limit, or has a second document or a second value of a key. It has
// none of the content.
type Limit string

func (l Limit) Error() string { return string(l) }

var (
	errTooLarge = limit("document is larger than %d MiB, as JSON and with its aliases expanded", maxBytes>>20)
	errTooDeep  = limit("document is nested deeper than %d levels", maxDepth)
	errNotUTF8  = limit("document is not UTF-8")
	errMore     = limit("content has more than one document")
	errAliased  = limit("document has aliases, and as written more than %d KiB or %d nodes", maxAliasedBytes>>10, maxAliasedNodes)
)

func limit(format string, of ...any) Limit { return Limit(fmt.Sprintf(format, of...)) }

func tooDense(nodes int) Limit {
	return limit("document has more than %d nodes, with its aliases expanded", nodes)
}

// IsLimit reports whether an error is about a limit.
func IsLimit(err error) bool {
	var l Limit
	return errors.As(err, &l)
}

// ToJSON returns a YAML document as JSON; JSON is returned as it is. Only the first document of a stream is returned.
func ToJSON(content []byte) ([]byte, error) { return toJSON(content, MaxNodes) }

// Unmarshal decodes a YAML document as if it were JSON: names are case-sensitive, and a key that no field has is ignored.
func Unmarshal(content []byte, into any) error {
	text, err := toJSON(content, MaxNodes)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}

// UnmarshalStrict decodes a YAML document as Unmarshal does, and refuses unknown and duplicate keys.
func UnmarshalStrict(content []byte, into any) error {
	text, err := toJSONBy(sigsyaml.YAMLToJSONStrict, content, MaxNodes)
	if err != nil {
		return err
	}
	refused, err := kjson.UnmarshalStrict(text, into)
	return errors.Join(append(refused, err)...)
}

func toJSON(content []byte, nodes int) ([]byte, error) {
	return toJSONBy(sigsyaml.YAMLToJSON, content, nodes)
}

// toJSONBy checks a document, and converts it if it is not JSON already.
func toJSONBy(convert func([]byte) ([]byte, error), content []byte, nodes int) ([]byte, error) {
	if isJSON(content) {
		return content, checkJSON(content, nodes)
	}
	if err := check(content, nodes); err != nil {
		return nil, err
	}
	text, err := convert(content)
	if err != nil {
		return nil, err
	}
	if deeper(text, maxDepth) {
		return nil, errTooDeep
	}
	return text, nil
}

// UnmarshalWhole decodes a YAML document that will be written again. A second document and a second value of a key,
// which would be lost, are refused. nodes may be less than MaxNodes.
func UnmarshalWhole(content []byte, nodes int, into any) error {
	text, err := toJSON(content, nodes)
	if err != nil {
		return err
	}
	if !isJSON(content) {
		if err := checkWhole(content); err != nil {
			return err
		}
	}
	refused, err := kjson.UnmarshalStrict(text, into, kjson.DisallowDuplicateFields)
	if err == nil && len(refused) > 0 {
		return limit("document has a key more than once")
	}
	return err
}

// checkWhole returns an error for a second document that has content, and for a duplicate key. Unlike the strict
// converter, it allows a key that overrides a merged one.
func checkWhole(content []byte) error {
	documents := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	if err := documents.Decode(&document); err != nil {
		return ignoreEOF(err)
	}
	if line := secondKey(&document); line > 0 {
		return limit("document has a key more than once: line %d", line)
	}
	for {
		var next yaml.Node
		if err := documents.Decode(&next); err != nil {
			return ignoreEOF(err)
		}
		if next.Content[0].Tag != "!!null" {
			return errMore
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// secondKey returns the line of a duplicate key of a mapping; 0 if there is none.
func secondKey(node *yaml.Node) int {
	keys := map[string]bool{}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			key := child
			if key.Alias != nil {
				key = key.Alias
			}
			if keys[key.Value] {
				return child.Line
			}
			keys[key.Value] = true
		}
		if line := secondKey(child); line > 0 {
			return line
		}
	}
	return 0
}

// CheckSize returns an error for a size that exceeds the limit, so that a text need not be copied to be refused.
func CheckSize(size int) error {
	if size > maxBytes {
		return errTooLarge
	}
	return nil
}

// CheckJSON returns an error for JSON that exceeds a limit.
func CheckJSON(content []byte) error { return checkJSON(content, MaxNodes) }

// isJSON reports whether a text is a JSON object, and nothing else.
func isJSON(content []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) && json.Valid(content)
}

func checkJSON(content []byte, nodes int) error {
	switch {
	case len(content) > maxBytes:
		return errTooLarge
	case !utf8.Valid(content):
		return errNotUTF8
	case JSONNodes(content) > nodes:
		return tooDense(nodes)
	case deeper(content, maxDepth):
		return errTooDeep
	}
	return nil
}

// check returns an error for a document that would exceed a limit, before it is parsed, or at least before any alias
// is expanded.
func check(content []byte, nodes int) error {
	switch {
	case len(content)+JSONGrowth(content) > maxBytes:
		return errTooLarge
	case !utf8.Valid(content): // The parser also accepts UTF-16, in which nodes cannot be counted.
		return errNotUTF8
	}
	written := YAMLNodes(content)
	switch {
	case written > nodes:
		return tooDense(nodes)
	case certainlyDeep(content):
		return errTooDeep
	case !MayHaveAliases(content):
		return nil
	case len(content) > maxAliasedBytes || written > maxAliasedNodes:
		return errAliased
	}
	expanded, err := Expand(content, Size{Nodes: nodes, Bytes: maxBytes, Depth: maxDepth})
	switch {
	case err != nil:
		return invalid(content, err)
	case expanded.Nodes > nodes:
		return tooDense(nodes)
	case expanded.Bytes > maxBytes:
		return errTooLarge
	case expanded.Depth > maxDepth:
		return errTooDeep
	}
	return nil
}

// invalid returns the error for a document with aliases whose expanded size is unknown. A syntax error of the
// decoding parser is returned as it is. The other parser accepts only what has the same meaning in YAML 1.1 and 1.2.
func invalid(content []byte, err error) error {
	if known := yaml2.Unmarshal(content, &unread{}); known != nil {
		return known
	}
	return errors.New("document with aliases is no YAML" + place.FindString(err.Error()))
}

// place matches the line at which the parser stopped, but nothing of its input.
var place = regexp.MustCompile(`: line \d+`)

// unread accepts any document and decodes nothing of it: only the syntax is checked, and no alias is followed.
type unread struct{}

// UnmarshalYAML implements yaml.Unmarshaler.
func (*unread) UnmarshalYAML(func(any) error) error { return nil }

// deepText limits the apparent nesting of a text. Each level costs a parser up to 1,200 bytes. Unbalanced brackets in
// strings are fewer than that.
const deepText = 2000

// certainlyDeep reports whether a document seems to be nested too deep for a parser: by open brackets, or by list
// indicators in one line. A document that hides its depth in quotes fails at the parser's limit of 10,000 levels.
func certainlyDeep(content []byte) bool {
	open, dashes := 0, 0
	for i, c := range content {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '\n', '\r':
			dashes = 0
		case '-', '?':
			if i+1 < len(content) && content[i+1] == ' ' {
				dashes++
			}
		}
		if open > deepText || dashes > deepText {
			return true
		}
	}
	return false
}

// deeper reports whether JSON is nested deeper than some levels.
func deeper(text []byte, levels int) bool {
	for _, open := range Brackets(text) {
		if open > levels {
			return true
		}
	}
	return false
}
