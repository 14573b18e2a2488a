package manifest

import (
	"bytes"
	"context"
	"math/rand"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func compress(t testing.TB, plain string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := brotli.NewWriter(&buffer)
	if _, err := writer.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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

func TestDecode(t *testing.T) {
	jsonFoo := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foo"}}`
	jsonBar := strings.Replace(jsonFoo, "foo", "bar", 1)
	truncated := compress(t, strings.Repeat(foo+"---\n", 50))
	truncated = truncated[:len(truncated)-3]

	for name, tc := range map[string]struct {
		data   map[string]string
		names  string
		errors []string
	}{
		"MRD-1/MRV-13 keys in byte order":                   {data: map[string]string{"b": bar, "a": foo}, names: "foo bar"},
		"MRD-2/MRV-12 documents, comments, CRLF":            {data: map[string]string{"a": "# c\n---\r\n" + strings.ReplaceAll(foo, "\n", "\r\n") + "---  # next\r\n# only a comment\r\n---\r\n---\n" + bar}, names: "foo bar"},
		"MRD-2 byte order mark":                             {data: map[string]string{"a": "\xef\xbb\xbf" + foo}, names: "foo"},
		"MRD-2 anchors":                                     {data: map[string]string{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foo}\ndata: &d {a: b}\nmore: *d\n"}, names: "foo"},
		"MRD-2 JSON stream":                                 {data: map[string]string{"a": jsonFoo + "\n" + jsonBar}, names: "foo bar"},
		"MRD-2 JSON between separators":                     {data: map[string]string{"a": jsonFoo + "\n---\n" + jsonBar + "\n---\n" + jsonFoo}, names: "foo bar foo"},
		"MRD-2 flow style is YAML":                          {data: map[string]string{"a": "{apiVersion: v1, kind: ConfigMap, metadata: {name: foo}}"}, names: "foo"},
		"MRD-3/MRV-11 Brotli":                               {data: map[string]string{"a.yaml.br": string(compress(t, foo+"---\n"+bar))}, names: "foo bar"},
		"MRD-4 empty documents":                             {data: map[string]string{"a": "---\n---\nnull\n---\n"}},
		"MRD-5/MRV-16 a broken document leaves the others":  {data: map[string]string{"a": foo + "---\na: [\n---\n" + bar}, names: "foo bar", errors: []string{"Could not decode resource at index 1 in 'a' in secret 'ns/s': "}},
		"MRD-5/MRV-18 list and scalar":                      {data: map[string]string{"a": "- 1\n---\njust text\n---\n" + bar}, names: "bar", errors: []string{"index 0 in 'a'", "index 1 in 'a'"}},
		"MRB-1/MRV-17 brace":                                {data: map[string]string{"a": "{", "b": bar}, names: "bar", errors: []string{"index 0 in 'a'"}},
		"MRB-1/MRV-17 one object and a stray brace":         {data: map[string]string{"a": jsonFoo + "}", "b": bar}, names: "bar", errors: []string{"index 0 in 'a'"}},
		"MRB-1/MRV-17 two objects and a syntax error":       {data: map[string]string{"a": jsonFoo + jsonBar + "{bad", "b": bar}, names: "foo bar bar", errors: []string{"index 2 in 'a'"}},
		"MRB-1/MRV-17 garbage under .br":                    {data: map[string]string{"a.br": foo, "b": bar}, names: "bar", errors: []string{"index 0 in 'a.br'"}},
		"MRB-1/MRV-17 empty .br":                            {data: map[string]string{"a.br": "", "b": bar}, names: "bar", errors: []string{"brotli: value is empty"}},
		"MRB-1/MRV-17 truncated .br":                        {data: map[string]string{"a.br": string(truncated), "b": bar}, names: "bar", errors: []string{"brotli: "}},
		"MRB-1/MRV-17 trailing garbage after .br":           {data: map[string]string{"a.br": string(compress(t, foo)) + "junk", "b": bar}, names: "bar", errors: []string{"brotli: "}},
		"MRB-14/MRV-28 a label that is no string":           {data: map[string]string{"a": foo + "  labels: {a: 1}\n---\n" + bar}, names: "bar", errors: []string{"metadata.labels: entry 1 of 1, in the order of keys: must be a string, is a number"}},
		"MRB-14 an annotation that is no string":            {data: map[string]string{"a": foo + "  annotations: {resources.gardener.cloud/ignore: true}\n"}, errors: []string{"metadata.annotations: entry 1 of 1, in the order of keys: must be a string, is a boolean"}},
		"MRD-2 content after a separator is a new document": {data: map[string]string{"a": foo + "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: bar}}\n"}, names: "foo bar"},
	} {
		t.Run(name, func(t *testing.T) {
			result := decode(t, source(tc.data))
			if got := names(result); got != tc.names {
				t.Errorf("objects: got %q, want %q", got, tc.names)
			}
			if len(result.Errors) != len(tc.errors) {
				t.Fatalf("errors: got %v, want %v", result.Errors, tc.errors)
			}
			for i, err := range result.Errors {
				if !strings.Contains(err.Error(), tc.errors[i]) {
					t.Errorf("error %d: got %q, want it to contain %q", i, err, tc.errors[i])
				}
			}
		})
	}
}

func TestChecksum(t *testing.T) {
	ab := foo + "---\n" + bar
	for name, tc := range map[string]struct {
		data map[string]string
		want string
	}{
		"MRD-18 nothing":                     {want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		"MRD-18 one object":                  {data: map[string]string{"a.yaml": foo}, want: "2e595f940ab24164ce646820e956a06b8e82c0cc34beea41b02f446be726f56b"},
		"MRD-17/MRD-18 a value counts twice": {data: map[string]string{"ab.yaml": ab}, want: "70714b8a83ee8bebbfae3de7d372e5ab32bef06e08bcbd83448b5244f9fc7ea2"},
		"MRD-18 both keys":                   {data: map[string]string{"a.yaml": foo, "ab.yaml": ab}, want: "dd72ff309844ba6463b1d7fdd15f8703a90dbffa01a37da806d47cb7123b5a5a"},
		"MRO-1 released objects do not count": {data: map[string]string{"a.yaml": foo + "  annotations: {resources.gardener.cloud/mode: Ignore}\n"},
			want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	} {
		t.Run(name, func(t *testing.T) {
			result := decode(t, source(tc.data))
			if got := result.Checksum(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNumbersAndBooleans(t *testing.T) {
	result := decode(t, source(map[string]string{"MRB-7": "kind: X\nbig: 9007199254740993\nyes: on\nfraction: 1.5\n"}))
	want := map[string]any{"kind": "X", "big": int64(9007199254740993), "true": true, "fraction": 1.5}
	if diff := cmp.Diff(want, result.Objects[0].Object); diff != "" {
		t.Errorf("MRB-7/MRV-21, MRD-2 (YAML 1.1): %s", diff)
	}
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
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		first := decode(t, []Source{{Data: map[string][]byte{key: value}}})
		second := decode(t, []Source{{Data: map[string][]byte{key: value}}})
		if first.Checksum() != second.Checksum() || len(first.Objects) != len(second.Objects) || len(first.Errors) != len(second.Errors) {
			t.Error("decoding the same bytes twice gave different results")
		}
		for _, object := range first.Objects {
			_ = object.DeepCopy()
		}
	})
}

func TestDecodeAlwaysEnds(t *testing.T) {
	seed := rand.New(rand.NewSource(1))
	valid := []string{foo, bar, `{"kind":"X"}`, "---\n", "{", "}", "\r\n", "#", string(compress(t, foo))}
	for range 500 {
		var value []byte
		for range seed.Intn(6) {
			piece := []byte(valid[seed.Intn(len(valid))])
			if len(piece) > 0 && seed.Intn(3) == 0 {
				piece = piece[:seed.Intn(len(piece))]
			}
			value = append(value, piece...)
		}
		key := []string{"a", "a.br"}[seed.Intn(2)]
		decode(t, []Source{{Data: map[string][]byte{key: value}}})
	}
}
