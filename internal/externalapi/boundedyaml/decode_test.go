package boundedyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/espalier-project/espalier/internal/externalapi/boundedyaml/yamltest"
	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestRefusedInputNeedsLittleMemory: what a document would become is known before it is expanded (T3-6).
func TestRefusedInputNeedsLittleMemory(t *testing.T) {
	sizes := []int{20 << 10, 80 << 10, 1 << 20}
	yamltest.RefusesCheaply(t, "T3-6/as JSON", sizes, func(content []byte) error { _, err := ToJSON(content); return err })
}

func TestLimits(t *testing.T) {
	texts := func(times int) string {
		return "a: &a " + strings.Repeat("x", 100<<10) + "\nb: [*a" + strings.Repeat(",*a", times-2) + "]\n"
	}
	nodes := func(times int) string {
		return "a: &a [" + strings.Repeat("x,", 99) + "x]\nb: [*a" + strings.Repeat(",*a", times-2) + "]\n"
	}
	for name, c := range map[string]struct {
		content string
		want    error
	}{
		"T3-6/3 MiB with aliases expanded":      {texts(30), nil},
		"T3-6/more than 3 MiB":                  {texts(31), errTooLarge},
		"T3-6/100,000 nodes":                    {nodes(980), nil},
		"T3-6/more than 100,000 nodes":          {nodes(1000), tooDense(MaxNodes)},
		"T3-6/more as written":                  {strings.Repeat("- a\n", 40_000), tooDense(MaxNodes)},
		"T3-6/JSON of more values":              {`{"a":[` + strings.Repeat("1,", 100_000) + "1]}", tooDense(MaxNodes)},
		"T3-6/commas in texts are no values":    {`{"a":"` + strings.Repeat("a, ", 100_000) + `"}`, nil},
		"T3-6/deep":                             {strings.Repeat("[", 300) + strings.Repeat("]", 300), errTooDeep},
		"T3-6/deep by aliases":                  {"a0: &a0 " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\na1: " + strings.Repeat("[", 100) + "*a0" + strings.Repeat("]", 100), errTooDeep},
		"T3-6/as deep as may be":                {strings.Repeat("[", 256) + strings.Repeat("]", 256), nil},
		"T3-6/an alias in many nodes":           {"a: &a b\nb: *a\n" + strings.Repeat("c: d\n", 2000), errAliased},
		"T3-6/signs that are no aliases":        {"a: \"make 2>&1 && *foo 3*x; a=&b\"\nb: |\n  - &a *b\nc: '" + strings.Repeat("x", 1<<20) + "'\n", nil},
		"T3-6/no UTF-8":                         {"a: \xff", errNotUTF8},
		"T3-6/JSON that is no UTF-8":            {"{\"a\": \"\xff\"}", errNotUTF8},
		"T3-6/a document that refers to itself": {"a: &a [*a]", tooDense(MaxNodes)},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := ToJSON([]byte(c.content))
			if !errors.Is(err, c.want) || err == nil && !json.Valid(text) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// honest are documents as people write them.
var honest = []string{
	"", "null", "a", "- a\n- 1\n", "a: 1\nb: 1.0\nc: 1e3\nd: yes\ne: 0x10\nf: 012\ng: ~\nh: 2001-01-01\n", "a: &a {b: c}\nd: {<<: *a, e: f}\ng: [*a, *a]\n", "a: b\na: c\n",
	"{a: b}", "{a: b, \"c\": [1, 2]}", "# only this\n", "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "a: \"\\u00e9\\n<&>\"\n", "1: a\n1.5: b\ntrue: c\n", "a: !!binary YQ==\n", "---\na: b\n---\nc: d\n", "a: [\n", "a: b: c\n", "a: *b\n", "\ta: b\n", "a: 123456789012345678901234567890\n",
	"%YAML 1.1\n---\na: b\n", "? a\n: b\n", "a: b\n...\n", "\ufeffa: b\n",
}

// TestHonestDocuments: what is within the limits becomes what it did become (T3-6).
func TestHonestDocuments(t *testing.T) {
	for _, content := range honest {
		want, wantErr := sigsyaml.YAMLToJSON([]byte(content))
		got, err := ToJSON([]byte(content))
		if diff := cmp.Diff(string(want), string(got)); diff != "" || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("T3-6/%q: got %v, want %v, %s", content, err, wantErr, diff)
		}
	}
	for content, want := range map[string]string{
		`{"a":1,"a":2}`:                 `{"a":2}`,
		` {"a": 12345678901234567890}`:  `{"a":12345678901234567890}`,
		`{"a":1,"A":2,"b":1.0,"c":1e2}`: `{"A":2,"a":1,"b":1,"c":100}`,
	} {
		text, err := ToJSON([]byte(content))
		var got, wanted any
		must.Succeed(t, errors.Join(err, json.Unmarshal(text, &got), json.Unmarshal([]byte(want), &wanted)))
		expect.DeepEqual(t, got, wanted, "T3-6/JSON, %s", content)
	}
}

func TestUnmarshal(t *testing.T) {
	var got struct {
		Name  string `json:"name"`
		Count int64  `json:"count"`
	}
	if err := Unmarshal([]byte("name: a\nNAME: b\ncount: 9007199254740993\nother: c\n"), &got); err != nil || got.Name != "a" || got.Count != 9007199254740993 {
		t.Errorf("T3-6/names are case-sensitive, and integers exact: got %+v, %v", got, err)
	}
	expect.Error(t, Unmarshal([]byte("name: [a]"), &got), "T3-6/another type is no error")
}

// T3-6: a caller may allow fewer nodes.
func TestFewerNodes(t *testing.T) {
	for name, content := range map[string]string{"as written": strings.Repeat("- a\n", 100), "by aliases": yamltest.Nested(3)} {
		var got any
		err := UnmarshalWhole([]byte(content), 200, &got)
		expect.True(t, errors.Is(err, tooDense(200)) && got == nil, "T3-6/too many %s: got %v, %v", name, got, err)
	}
}

// TestUnmarshalWhole refuses content of which a decoded value would lose a part.
func TestUnmarshalWhole(t *testing.T) {
	const twice, more = "document has a key more than once", "content has more than one document"
	for content, want := range map[string]string{
		"a: 1\n":                              "",
		"# x\n---\na: 1\n...\n":               "",
		"a: 1\n---\n# nothing\n---\n~\n...\n": "",
		"":                                    "",
		`{"a":{"b":1},"c":{"b":1}}`:           "",
		"b: &b {t: 1}\nu: {<<: *b, t: 2}\n":   "",
		"a: 1\n---\nb: 2\n":                   more,
		"a: 1\n---\n---\nb: 2\n":              more,
		"---\n---\na: 1\n":                    more,
		"{\"a\":1}\n---\n{\"b\":2}\n":         more,
		"a: 1\n...\nb: 2\n":                   "yaml: line ",
		"a: 1\n---\nb: [":                     "yaml: line ",
		"a: 1\nb: 2\na: 3\n":                  twice + ": line 3",
		"- {a: 1, 'a': 3}":                    twice + ": line 1",
		"a: &x k\nb: {k: 1, *x : 2}":          twice + ": line 2",
		`{"a":[{"b":1,"b":2}]}`:               twice,
	} {
		var got any
		if err := UnmarshalWhole([]byte(content), MaxNodes, &got); (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("TR-23a/%q: got %v, want %q", content, err, want)
		}
	}
}

// TestWorkIsLinear: what a text costs grows with its length, whatever it is made of (T3-6).
func TestWorkIsLinear(t *testing.T) {
	for name, of := range map[string]func(n int) string{
		"entries":            func(n int) string { return strings.Repeat("- a\n", n) },
		"keys":               func(n int) string { return keys(n) },
		"JSON":               func(n int) string { return `{"a":[` + strings.Repeat("1,", n) + "1]}" },
		"comments":           func(n int) string { return strings.Repeat("# a\n", n) + "a: b" },
		"signs of anchors":   func(n int) string { return "a: " + strings.Repeat("&a", n) + strings.Repeat("*b", n) },
		"words with anchors": func(n int) string { return "a: " + strings.Repeat("! &a", n) },
		"blanks":             func(n int) string { return "a: &a b" + strings.Repeat(" \n", n) + "c: *a" },
		"open quotes":        func(n int) string { return strings.Repeat("a: 'b\n", n) },
		"aliases":            func(n int) string { return "a: &a b\nc: [" + strings.Repeat("*a,", n/8) + "]" },
		"anchors":            func(n int) string { return "a: &a b\nc: [*a," + strings.Repeat("&a b,", n/10) + "]" },
		"anchors of names":   func(n int) string { return "a: &a b\nc: *a\n" + anchors(n/16) },
		"deep":               func(n int) string { return strings.Repeat("[", n/16) + strings.Repeat("]", n/16) },
		"deep blocks":        func(n int) string { return deep(n / 64) },
		"texts":              func(n int) string { return "a: " + strings.Repeat("x", 20*n) },
	} {
		t.Run("T3-6/"+name, func(t *testing.T) {
			yamltest.Linear(t, 8000, func(n int) { _, _ = ToJSON([]byte(of(n))) })
		})
	}
}

func anchors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: &k%d v\n", i, i)
	}
	return b.String()
}

// deep is as large as n squared.
func deep(n int) string {
	var b strings.Builder
	for i := range int(math.Sqrt(float64(100 * n))) {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: v\n", i)
	}
	return b.String()
}

// FuzzToJSON: any bytes end at a bounded cost, and what comes out is JSON (T3-6).
func FuzzToJSON(f *testing.F) {
	for _, content := range honest {
		f.Add([]byte(content))
	}
	yamltest.Seeds(f, func(content string) { f.Add([]byte(content)) })
	f.Fuzz(func(t *testing.T, content []byte) {
		yamltest.Bounded(t, len(content), func() {
			if text, err := ToJSON(content); err == nil && !json.Valid(text) {
				t.Errorf("%q becomes %q", content, text)
			}
		})
	})
}

// TestPropertyOfHonestDocuments: documents of a grammar, with and without aliases, become what the parser alone makes of them (T3-6).
func TestPropertyOfHonestDocuments(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		content := hostileText(rt)
		got, err := ToJSON([]byte(content))
		want, wantErr := sigsyaml.YAMLToJSON([]byte(content))
		if err == nil && !isJSON([]byte(content)) && string(want) != string(got) || err == nil && wantErr != nil {
			rt.Errorf("%q: got %s, %v, want %s, %v", content, got, err, want, wantErr)
		}
	})
}
