package manifest

import (
	"bytes"

	yaml3 "go.yaml.in/yaml/v3"
)

// size is what a document takes of the budget.
type size struct{ nodes, bytes int }

// expansion is what a document with aliases takes, or why that is not known.
type expansion struct {
	size
	err error
}

// mayHaveAliases says whether a document may have an anchor and an alias, without parsing it.
func mayHaveAliases(document []byte) bool {
	return mayHaveName(document, '&') && mayHaveName(document, '*')
}

// mayHaveName says whether a sign may begin an anchor or an alias somewhere. Their names begin with a letter, a digit, "_" or
// "-", and they never follow a letter or a digit.
func mayHaveName(document []byte, sign byte) bool {
	for at := 0; ; at++ {
		next := bytes.IndexByte(document[at:], sign)
		if next < 0 {
			return false
		}
		at += next
		begins := at == 0 || !alphanumeric(document[at-1])
		if begins && at+1 < len(document) && (alphanumeric(document[at+1]) || document[at+1] == '_' || document[at+1] == '-') {
			return true
		}
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// expand counts nodes and the bytes of all scalars, as JSON, with each alias expanded. It counts no further than one more
// than a document may have. This parser takes what the one that decodes takes, unless something follows the document.
func expand(document []byte) expansion {
	var root yaml3.Node
	if err := yaml3.Unmarshal(document, &root); err != nil {
		return expansion{err: err}
	}
	known := map[*yaml3.Node]size{} // Of nodes with an anchor; the others are seen once.
	var count func(*yaml3.Node) size
	count = func(node *yaml3.Node) size {
		if node.Alias != nil {
			node = node.Alias
		}
		if all, found := known[node]; found {
			return all
		}
		if node.Anchor != "" {
			known[node] = size{maxDocumentNodes + 1, maxDocumentBytes + 1} // An alias within its own anchor has no end.
		}
		all := size{1, len(node.Value) + jsonGrowth([]byte(node.Value))}
		for _, child := range node.Content {
			of := count(child)
			all.nodes = min(all.nodes+of.nodes, maxDocumentNodes+1)
			all.bytes = min(all.bytes+of.bytes, maxDocumentBytes+1)
		}
		if node.Anchor != "" {
			known[node] = all
		}
		return all
	}
	return expansion{size: count(&root)}
}
