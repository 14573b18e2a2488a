package admission

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
)

// drawJSON draws a value with odd texts and spaces.
func drawJSON(rt *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", " ", "\n\t "})
	texts := []string{`"a"`, `"b"`, `""`, `"\u0061"`, `"x\"]},\\"`, `"ä{["`}
	switch kind := rapid.IntRange(0, 4).Draw(rt, "kind"); {
	case kind == 0 && depth > 0:
		result, separator := "{", ""
		for range rapid.IntRange(0, 4).Draw(rt, "members") {
			result += separator + space.Draw(rt, "s") + rapid.SampledFrom(texts).Draw(rt, "key") + space.Draw(rt, "s") + ":" + space.Draw(rt, "s") + drawJSON(rt, depth-1) + space.Draw(rt, "s")
			separator = ","
		}
		return result + space.Draw(rt, "s") + "}"
	case kind == 1 && depth > 0:
		result, separator := "[", ""
		for range rapid.IntRange(0, 4).Draw(rt, "elements") {
			result += separator + space.Draw(rt, "s") + drawJSON(rt, depth-1) + space.Draw(rt, "s")
			separator = ","
		}
		return result + space.Draw(rt, "s") + "]"
	case kind == 2:
		return rapid.SampledFrom(texts).Draw(rt, "text")
	}
	return rapid.SampledFrom([]string{"null", "true", "-1.5e3", "{}", "[ ]", "0"}).Draw(rt, "value")
}

// TestFindProperty: what is found is what a decoder finds.
func TestFindProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		raw := []byte(drawJSON(rt, 3))
		var object map[string]json.RawMessage
		isObject := json.Unmarshal(raw, &object) == nil && object != nil
		for _, key := range []string{"a", "b", "", `x"]},\`, "missing"} {
			value, found := member(raw, key)
			want, is := object[key]
			if found != (isObject && is) || string(value) != string(want) {
				rt.Fatalf("%s: %q is %s, %v, want %s, %v", raw, key, value, found, want, is)
			}
		}
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			list = nil
		}
		got := elements(raw)
		if len(got) != len(list) {
			rt.Fatalf("%s: %d elements of %d", raw, len(got), len(list))
		}
		for i := range list {
			if string(got[i]) != string(list[i]) {
				rt.Fatalf("%s: element %d is %s, want %s", raw, i, got[i], list[i])
			}
		}
	})
}

// FuzzFind: input that is no JSON ends without a panic, and costs little.
func FuzzFind(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `[1,{"a":[]}]`, `{"a`, `{"a":`, `[`, `"\`, `{"a"1}`, `}`, `{,}`, `{"a":"\"}`, `[]]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		yamltest.Bounded(t, len(raw), func() {
			member(raw, "a")
			elements(raw)
		})
	})
}
