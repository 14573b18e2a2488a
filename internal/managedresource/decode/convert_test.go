package decode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/test/expect"
)

// asKubernetes decodes a document as kubectl does.
func asKubernetes(text string) (map[string]any, bool) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, false
	}
	content := map[string]any{}
	return content, json.Unmarshal(raw, &content) == nil
}

func checkAsKubernetes(t rapid.TB, text string) {
	t.Helper()
	got := (&part{text: []byte(text), line: 1}).yamlDocument()
	want, ok := asKubernetes(text)
	switch {
	case errors.Is(got.err, errSameKeys) || errors.Is(got.err, errBinary) || errors.Is(got.err, errGoesOn):
		return // Kubernetes takes one of them, another text, or a part.
	case got.err != nil:
		expect.False(t, ok, "%q: %v", text, got.err)
		return
	}
	diff := cmp.Diff(want, got.content)
	expect.True(t, ok && diff == "", "%q: %s", text, diff)
}

// MRD-2: a document is decoded as by Kubernetes' own tools.
func TestPropertyDocumentsAreThoseOfKubernetes(t *testing.T) {
	scalars := []string{
		"a", "'1'", "1", "-0", "1.0", "1e3", "0x1f", "0b11", "017", "1_000", "9007199254740993", "18446744073709551615", "123456789012345678901234567890", "1.5", "0.1", "1e300", "-0.0", "3.14159265358979",
		"true", "on", "'on'", "No", "~", "null", "''", "2001-12-14", "!!str 1", "!!float 1", "!!binary YWJj", "!!timestamp 2001-12-14", "\"\\x01\\u2028<>&\\U0001F600\"", ".inf", "-.inf", ".nan", "{}", "[]", "<<", "é",
	}
	rapid.Check(t, func(t *rapid.T) {
		scalar := rapid.SampledFrom(scalars)
		text := "kind: X\n"
		for range rapid.IntRange(0, 4).Draw(t, "entries") {
			text += "? " + scalar.Draw(t, "key") + "\n: " + rapid.SampledFrom([]string{"", "- ", "- - ", "? a\n  : ", "? 1\n  : "}).Draw(t, "in") + scalar.Draw(t, "value") + "\n"
		}
		checkAsKubernetes(t, text)
	})
	for _, scalar := range scalars {
		for _, text := range []string{scalar + ": x\n", "x: " + scalar + "\n", "x: [" + scalar + ", {" + scalar + ": " + scalar + "}]\n"} {
			checkAsKubernetes(t, text)
		}
	}
	checkAsKubernetes(t, "a: &a {b: 1, c: {d: 2}}\ne: {<<: *a, b: 3}\nf: {b: 3, <<: *a}\ng: {<<: [{b: 4}, *a]}\n")
}

// MRD-2: of a key that is there twice the last counts. Which is the last of two that only JSON takes for the same is not known,
// and a guess would have the object written again and again.
func TestDecode_LastOfEqualKeysCounts(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\na: 2\n":                "",
		"8080: a\n\"8080\": b\n":      errSameKeys.Error(),
		"1: a\n\"1\": b\n~: c\n":      errKey.Error(),
		"x: [{\"true\": a, on: b}]\n": errSameKeys.Error(),
		"x: {1.0: a, 1: b}\n":         errSameKeys.Error(),
	} {
		for range 50 {
			got := (&part{text: []byte(text), line: 1}).yamlDocument()
			if want != "" && (got.err == nil || got.err.Error() != want) {
				t.Fatalf("%q: got %v, %v, want %s", text, got.content, got.err, want)
			}
			if want == "" && !cmp.Equal(got.content, map[string]any{"a": int64(2)}) {
				t.Fatalf("%q: got %v, %v", text, got.content, got.err)
			}
		}
	}
}

// MRB-1: bytes that are no text are an error, not another text.
func TestDecode_RefusesBinary(t *testing.T) {
	for _, text := range []string{"a: !!binary /+8=\n", "!!binary /+8=: a\n", "a: [{b: &x !!binary /+8=}, *x]\n"} {
		result := decode(t, source(map[string]string{"a": text, "b": foo}))
		expect.True(t, len(result.Errors) == 1 && errors.Is(result.Errors[0], errBinary) && names(result) == "foo",
			"%q: got %d objects, %v", text, len(result.Objects), result.Errors)
	}
	expect.Empty(t, decode(t, source(map[string]string{"a": foo + "data: {a: !!binary YWJj}\n"})).Errors,
		"binary that is text")
}
