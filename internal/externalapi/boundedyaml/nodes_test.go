package boundedyaml

import (
	"strings"
	"testing"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
)

// countNodes counts the nodes of a decoded document: what the parser had in memory, at least.
func countNodes(value any) int {
	nodes := 1
	switch value := value.(type) {
	case goyaml.MapSlice:
		for _, item := range value {
			nodes += countNodes(item.Key) + countNodes(item.Value)
		}
	case []any:
		for _, item := range value {
			nodes += countNodes(item)
		}
	}
	return nodes
}

// hostile are pieces that hide nodes from a reader who takes a line for what it seems to be.
var hostile = []string{
	"a: |", "- b: |", "c: >-", "? d: |2", "x", "\"", "'", "[", "]", "{", "}", "[x,x,x]", "{a: b}", ", ", ": ", "- ", "? ", "#", " # x: |", "\n", "\n ", "\n  ", "\n    ", "\n      ",
	"\r", "\u0085", "\u2028", "\t", "--- ", "!!str ", "&a ", "a: ", "[]", "{}", "\\", "*", "*a", "!a:b &a", "!<tag:a> ", "\ufeff", " &a x", " *a", "- *a\n", "&a [x]\n", "<<: *a", "x,x,x", "|", ">", "\n- ", "\n  - ", "\n? ", "\n: ",
}

func hostileText(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 25).Draw(t, "pieces"), "")
}

func checkNodes(t rapid.TB, text string) {
	var expanded Size
	if MayHaveAliases([]byte(text)) && utf8.ValidString(text) {
		var err error
		if expanded, err = Expand([]byte(text), Size{Nodes: MaxNodes, Bytes: maxBytes, Depth: maxDepth}); err != nil || expanded.Nodes > MaxNodes {
			return // It is refused.
		}
	}
	var value goyaml.MapSlice
	var list []any
	var decoded any
	switch {
	case goyaml.Unmarshal([]byte(text), &value) == nil:
		decoded = value
	case goyaml.Unmarshal([]byte(text), &list) == nil:
		decoded = list
	default:
		return
	}
	got, want := max(YAMLNodes([]byte(text)), expanded.Nodes), countNodes(decoded)
	expect.True(t, got >= want, "%d nodes counted, %d decoded: %q", got, want, text)
}

func TestPropertyNodesAreNeverCountedTooLow(t *testing.T) {
	for range 50 { // Few of the texts are valid, and one takes microseconds.
		rapid.Check(t, func(t *rapid.T) { checkNodes(t, hostileText(t)) })
	}
	for _, text := range []string{"- - - a", "a:\n b:\n  c:", "[[[]]]", "{a, b, c}", "? a\n? b", "{? a, ? b}", "[a: b, c: d]", "- a: |\n   text\n  b: [x, x, x]", "? a\n: - b: |\n     text\n    c: [x, x, x, x, x, x, x, x, x, x]", "[&a [x, x], *a,*a]", "{a: &a {b: c}, <<: *a, d: [*a]}", "a: &a\n- &b x\n- *b\nc: *a", "- &-a x\n-\t*-a"} {
		checkNodes(t, text)
	}
}

func FuzzNodes(f *testing.F) {
	for _, text := range append(hostile, "a: |\n  x\nb: [x,x]", "[\"x\n k: |\n   \", a, a]", "a[: x\nb: ]") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkNodes(t, text) })
}
