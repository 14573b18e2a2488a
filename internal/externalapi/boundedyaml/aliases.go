package boundedyaml

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Size is the size of a document with each alias expanded.
type Size struct{ Nodes, Bytes, Depth int }

// MayHaveAliases reports whether a document may have an anchor and an alias, without parsing it. It may be wrong about
// a document without aliases, but never overlooks an alias: an alias begins where a node may begin.
func MayHaveAliases(document []byte) bool {
	return mayHaveName(document, '&') && mayHaveName(document, '*')
}

// mayHaveName reports whether a sign may begin an anchor or an alias somewhere. The names of both begin with a letter, a digit, "_" or "-".
func mayHaveName(document []byte, sign byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(document[at:], sign)
		if next < 0 {
			return false
		}
		at += next
		if at+1 < len(document) && (alphanumeric(document[at+1]) || document[at+1] == '_' || document[at+1] == '-') && mayBegin(document[:at]) {
			return true
		}
	}
}

// mayBegin reports whether a node may begin after some text: at the beginning of a line, after an indicator, and after its tag and a space. A tag
// has no space in it, and may end with any character.
func mayBegin(before []byte) bool {
	text := bytes.TrimRight(before, " \t")
	last, _ := utf8.DecodeLastRune(text)
	if len(text) == 0 || strings.ContainsRune(beginnings, last) {
		return true
	}
	if len(text) == len(before) {
		return false // The sign is inside a word.
	}
	return bytes.IndexByte(text[bytes.LastIndexAny(text, spaces)+1:], '!') >= 0
}

const (
	// breaks are the line breaks of YAML 1.1, and the byte order mark.
	breaks = "\n\r\u0085\u2028\u2029\ufeff"
	spaces = " \t" + breaks
	// beginnings are the characters that may precede a node.
	beginnings = "-?:,[{" + breaks
)

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// Expand computes the size of a document with aliases, on its tree, without expanding any. It stops counting at one
// more than most. An alias within its own anchor has no end, and therefore counts as one more than most.
//
// The parser of the tree accepts the same documents as the decoding parser, unless something follows the document. It
// costs up to 600 bytes for each node that YAMLNodes counts, and up to eight times the text.
func Expand(document []byte, most Size) (Size, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return Size{}, err
	}
	c := counter{most: Size{most.Nodes + 1, most.Bytes + 1, most.Depth + 1}, known: map[*yaml.Node]Size{}}
	return c.count(&root), nil
}

// counter computes the sizes of nodes.
type counter struct {
	most Size
	// known has the sizes of nodes with an anchor. Other nodes are visited once.
	known map[*yaml.Node]Size
}

func (c *counter) count(node *yaml.Node) Size {
	if node.Alias != nil {
		node = node.Alias
	}
	if all, found := c.known[node]; found {
		return all
	}
	if node.Anchor != "" {
		c.known[node] = c.most
	}
	all := Size{Nodes: 1, Bytes: len(node.Value) + JSONGrowth([]byte(node.Value)), Depth: 1}
	for _, child := range node.Content {
		of := c.count(child)
		all.Nodes = min(all.Nodes+of.Nodes, c.most.Nodes)
		all.Bytes = min(all.Bytes+of.Bytes, c.most.Bytes)
		all.Depth = min(max(all.Depth, of.Depth+1), c.most.Depth)
	}
	if node.Anchor != "" {
		c.known[node] = all
	}
	return all
}
