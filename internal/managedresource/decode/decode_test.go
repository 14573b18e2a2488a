package decode

import (
	"bytes"
	"context"
	"math/rand"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

func compress(t testing.TB, plain string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := brotli.NewWriter(&buffer)
	must.Succeed(t, expect.ErrorOf(writer.Write([]byte(plain))))
	must.Succeed(t, writer.Close())
	return buffer.Bytes()
}

func source(data map[string]string) []Source {
	values := map[string][]byte{}
	for key, value := range data {
		values[key] = []byte(value)
	}
	return []Source{{Secret: types.NamespacedName{Namespace: "ns", Name: "s"}, Data: values}}
}

func decode(t testing.TB, sources []Source) Result {
	t.Helper()
	result, err := Decode(context.Background(), sources)
	must.Succeed(t, err)
	return result
}

func names(result Result) string {
	var names []string
	for _, object := range result.Objects {
		names = append(names, object.GetName())
	}
	return strings.Join(names, " ")
}

const (
	foo = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: foo\n"
	bar = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bar\n"
)

func TestDecode_ReportsEachFault(t *testing.T) {
	jsonFoo := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foo"}}`
	jsonBar := strings.Replace(jsonFoo, "foo", "bar", 1)
	truncated := compress(t, strings.Repeat(foo+"---\n", 50))
	truncated = truncated[:len(truncated)-3]

	for name, tc := range map[string]struct {
		data   map[string]string
		names  string
		errors []string
	}{
		"MRD-1/keys in byte order":                          {data: map[string]string{"b": bar, "a": foo}, names: "foo bar"},
		"MRD-2/documents, comments, CRLF":                   {data: map[string]string{"a": "# c\n---\r\n" + strings.ReplaceAll(foo, "\n", "\r\n") + "---  # next\r\n# only a comment\r\n---\r\n---\n" + bar}, names: "foo bar"},
		"MRD-2/byte order mark":                             {data: map[string]string{"a": "\xef\xbb\xbf" + foo}, names: "foo"},
		"MRD-2/anchors":                                     {data: map[string]string{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foo}\ndata: &d {a: b}\nmore: *d\n"}, names: "foo"},
		"MRD-2/JSON stream":                                 {data: map[string]string{"a": jsonFoo + "\n" + jsonBar}, names: "foo bar"},
		"MRD-2/JSON between separators":                     {data: map[string]string{"a": jsonFoo + "\n---\n" + jsonBar + "\n---\n" + jsonFoo}, names: "foo bar foo"},
		"MRD-2/flow style is YAML":                          {data: map[string]string{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}}"}, names: "foo"},
		"HLP-3/BH-MR-37/the keys of gardenlet":              {data: map[string]string{"data.yaml.br": string(compress(t, foo)), "configmap__ns__bar.yaml": bar}, names: "bar foo"},
		"MRD-3/Brotli":                                      {data: map[string]string{"a.yaml.br": string(compress(t, foo+"---\n"+bar))}, names: "foo bar"},
		"MRD-4/empty documents":                             {data: map[string]string{"a": "---\n---\nnull\n---\n"}},
		"MRD-5/a broken document leaves the others":         {data: map[string]string{"a": foo + "---\na: [\n---\n" + bar}, names: "foo bar", errors: []string{"Could not decode resource at index 1 in 'a' in secret 'ns/s': "}},
		"MRD-5/list and scalar":                             {data: map[string]string{"a": "- 1\n---\njust text\n---\n" + bar}, names: "bar", errors: []string{"index 0 in 'a'", "index 1 in 'a'"}},
		"MRB-1/brace":                                       {data: map[string]string{"a": "{", "b": bar}, names: "bar", errors: []string{"index 0 in 'a'"}},
		"MRB-1/one object and a stray brace":                {data: map[string]string{"a": jsonFoo + "}", "b": bar}, names: "bar", errors: []string{"index 0 in 'a'"}},
		"MRB-1/two objects and a syntax error":              {data: map[string]string{"a": jsonFoo + jsonBar + "{bad", "b": bar}, names: "foo bar bar", errors: []string{"index 2 in 'a'"}},
		"MRB-1/garbage under .br":                           {data: map[string]string{"a.br": foo, "b": bar}, names: "bar", errors: []string{"index 0 in 'a.br'"}},
		"MRB-1/empty .br":                                   {data: map[string]string{"a.br": "", "b": bar}, names: "bar", errors: []string{"brotli: value is empty"}},
		"MRB-1/truncated .br":                               {data: map[string]string{"a.br": string(truncated), "b": bar}, names: "bar", errors: []string{"brotli: "}},
		"MRB-1/trailing garbage after .br":                  {data: map[string]string{"a.br": string(compress(t, foo)) + "junk", "b": bar}, names: "bar", errors: []string{"brotli: "}},
		"MRB-14/a label that is no string":                  {data: map[string]string{"a": foo + "  labels: {a: 1}\n---\n" + bar}, names: "bar", errors: []string{"metadata.labels: entry 1 of 1, in the order of keys: must be a string, is a number"}},
		"MRB-14/an annotation that is no string":            {data: map[string]string{"a": foo + "  annotations: {resources.gardener.cloud/ignore: true}\n"}, errors: []string{"metadata.annotations: entry 1 of 1, in the order of keys: must be a string, is a boolean"}},
		"MRD-2/the end of a document":                       {data: map[string]string{"a": foo + "...\n# c\n---\n" + bar + "...\n"}, names: "foo bar"},
		"MRD-4/null and a comment":                          {data: map[string]string{"a": "null # c\n# c\n...\n---\n" + bar}, names: "bar"},
		"MRD-2/indented as a whole":                         {data: map[string]string{"a": "---\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: foo\n---\n" + bar}, names: "foo bar"},
		"MRD-2/lines end with CR":                           {data: map[string]string{"a": "# c\r" + strings.ReplaceAll(foo, "\n", "\r")}, names: "foo"},
		"MRD-2/JSON after a comment":                        {data: map[string]string{"a": "# Source: chart/templates/foo.json\n" + jsonFoo + "\n# c\n---\n# c\n" + jsonBar}, names: "foo bar"},
		"MRD-2/a tag, an anchor, a quoted key":              {data: map[string]string{"a": "--- !!map\n" + foo + "--- &x\n" + bar + "---\n\"kind\": Quoted\nmetadata: {name: baz}\n"}, names: "foo bar baz"},
		"MRD-2/what looks like a separator in a text":       {data: map[string]string{"a": foo + "data:\n  a: |\n    ---\n    ...\n    x\n---\n" + bar}, names: "foo bar"},
		"MRB-1/another document after an end":               {data: map[string]string{"a": foo + "...\n" + bar, "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/JSON objects after a comment":                {data: map[string]string{"a": "# generated\n" + jsonFoo + "\n" + jsonBar, "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/JSON objects after a tag":                    {data: map[string]string{"a": "!!map " + jsonFoo + "\n" + jsonBar, "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/separators between lines that end with CR":   {data: map[string]string{"a": strings.ReplaceAll(foo+"---\n"+bar, "\n", "\r"), "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/less indented than its first line":           {data: map[string]string{"a": "  kind: X\n" + foo, "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/after a null":                                {data: map[string]string{"a": "null # c\n" + foo, "b": bar}, names: "bar", errors: []string{"belongs to no document"}},
		"MRB-1/UTF-16":                                      {data: map[string]string{"a": "\xff\xfea\x00:\x00 \x00b\x00", "b": "---\n\xfe\xff\x00a\x00:\x00 \x00b\x00", "c": bar}, names: "bar", errors: []string{"document is not UTF-8", "document is not UTF-8"}},
		"MRB-1/a byte that is not UTF-8":                    {data: map[string]string{"a": "a: caf\xe9\n", "b": strings.Replace(jsonFoo, "foo", "caf\xe9", 1) + jsonBar}, names: "bar", errors: []string{"document is not UTF-8", "index 0 in 'b' in secret 'ns/s': document is not UTF-8"}},
		"MRD-2/content after a separator is a new document": {data: map[string]string{"a": foo + "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: bar}}\n"}, names: "foo bar"},
	} {
		t.Run(name, func(t *testing.T) {
			result := decode(t, source(tc.data))
			expect.Equal(t, names(result), tc.names, "objects")
			must.Equal(t, len(result.Errors), len(tc.errors), "errors: got %v, want %v", result.Errors, tc.errors)
			for i, err := range result.Errors {
				expect.Contains(t, err.Error(), tc.errors[i], "error %d", i)
			}
		})
	}
}

// MRB-1, MRB-2: with any separator and any beginning, each document is read or there is an error; else
// its object would be deleted, as no manifest has it any more.
func TestDecode_ReadsEachDocument(t *testing.T) {
	forms := []string{
		"kind: X\nmetadata: {name: %}", "  kind: X\n  metadata: {name: %}", `{"kind": "X", "metadata": {"name": "%"}}`, "{kind: X, metadata: {name: %}}",
		"!!map\nkind: X\nmetadata: {name: %}", "!!map {kind: X, metadata: {name: %}}", "&a {kind: X, metadata: {name: %}}", "# c\n{kind: X, metadata: {name: %}}",
		" \n\"kind\": X\nmetadata: {name: %}", "? kind\n: X\n? metadata\n: {name: %}", "null # c\nkind: X\nmetadata: {name: %}",
	}
	ends := []string{"\n", "\r", "\r\n", "\u0085", "\u2028", "\u2029"}
	marks := []string{"---", "--- ", "---\t", "...", "... # c", "--- # c", "...\n---", "---\n..."}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		want := map[string]bool{}
		for i := range rapid.IntRange(1, 4).Draw(t, "documents") {
			form := rapid.SampledFrom(forms).Draw(t, "form")
			if i > 0 {
				mark := rapid.SampledFrom(marks).Draw(t, "mark")
				if strings.Contains(form, "{\"kind") && rapid.Bool().Draw(t, "no mark") {
					mark = ""
				}
				text.WriteString(rapid.SampledFrom(ends).Draw(t, "end") + mark + rapid.SampledFrom(ends).Draw(t, "end"))
			}
			name := string(rune('a' + i))
			want[name] = true
			text.WriteString(strings.ReplaceAll(strings.ReplaceAll(form, "%", name), "\n", rapid.SampledFrom(ends[:3]).Draw(t, "end of lines")))
		}
		result := decodeBytes(t, text.String())
		if len(result.Errors) > 0 {
			return
		}
		for _, object := range result.Objects {
			delete(want, object.GetName())
		}
		expect.Empty(t, want, "documents were left out of %q", text.String())
	})
}

func decodeBytes(t rapid.TB, text string) Result {
	t.Helper()
	result, err := Decode(context.Background(), source(map[string]string{"a": text}))
	must.Succeed(t, err)
	return result
}

func TestChecksum_IsThatOfTheReference(t *testing.T) {
	ab := foo + "---\n" + bar
	for name, tc := range map[string]struct {
		data map[string]string
		want string
	}{
		"MRD-18/nothing":                     {want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"MRD-18/one object":                  {data: map[string]string{"a.yaml": foo}, want: "2e595f940ab24164ce646820e956a06b8e82c0cc34beea41b02f446be726f56b"},
		"MRD-17/MRD-19/a value counts twice": {data: map[string]string{"ab.yaml": ab}, want: "70714b8a83ee8bebbfae3de7d372e5ab32bef06e08bcbd83448b5244f9fc7ea2"},
		"MRD-18/both keys":                   {data: map[string]string{"a.yaml": foo, "ab.yaml": ab}, want: "dd72ff309844ba6463b1d7fdd15f8703a90dbffa01a37da806d47cb7123b5a5a"},
		"MRO-1/released objects do not count": {data: map[string]string{"a.yaml": foo + "  annotations: {resources.gardener.cloud/mode: Ignore}\n"},
			want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	} {
		t.Run(name, func(t *testing.T) {
			result := decode(t, source(tc.data))
			expect.Equal(t, result.Checksum(), tc.want)
		})
	}
}

func TestDecode_KeepsNumbersAndBooleans(t *testing.T) {
	result := decode(t, source(map[string]string{"MRB-7": "kind: X\nbig: 9007199254740993\nyes: on\nfraction: 1.5\n"}))
	want := map[string]any{"kind": "X", "big": int64(9007199254740993), "true": true, "fraction": 1.5}
	expect.DeepEqual(t, result.Objects[0].Object, want, "MRB-7, MRD-2 (YAML 1.1)")
}

func FuzzDecode(f *testing.F) {
	f.Add("a", []byte(foo+"---\n"+bar))
	f.Add("a", []byte("{"))
	f.Add("a", []byte(`{"a":1}}`))
	f.Add("a", []byte(`{"a":1}{"b":2}---`))
	f.Add("a.br", []byte{})
	f.Add("a.br", compress(f, foo))
	f.Add("a.br", compress(f, foo)[:5])
	f.Add("a.br", append(compress(f, foo), "junk"...))
	f.Add("a.br", compress(f, strings.Repeat("a", 1<<22)))
	f.Add("a", []byte("a: &a [*a]"))
	f.Add("a", []byte("? [a]\n: b"))
	yamltest.Seeds(f, func(content string) { f.Add("a", []byte(content)) })
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		var first Result
		yamltest.Bounded(t, len(value), func() { first = decode(t, []Source{{Data: map[string][]byte{key: value}}}) })
		second := decode(t, []Source{{Data: map[string][]byte{key: value}}})
		if first.Checksum() != second.Checksum() || len(first.Objects) != len(second.Objects) || len(first.Errors) != len(second.Errors) {
			t.Error("decoding the same bytes twice gave different results")
		}
		for _, object := range first.Objects {
			_ = object.DeepCopy()
		}
	})
}

func TestDecode_AlwaysEnds(t *testing.T) {
	seed := rand.New(rand.NewSource(1))
	valid := []string{foo, bar, `{"kind":"X"}`, "---\n", "{", "}", "\r\n", "#", string(compress(t, foo))}
	for range 500 {
		var value []byte
		for range seed.Intn(6) {
			document := []byte(valid[seed.Intn(len(valid))])
			if len(document) > 0 && seed.Intn(3) == 0 {
				document = document[:seed.Intn(len(document))]
			}
			value = append(value, document...)
		}
		key := []string{"a", "a.br"}[seed.Intn(2)]
		decode(t, []Source{{Data: map[string][]byte{key: value}}})
	}
}
