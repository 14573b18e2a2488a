package decode

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// maxRefused limits the memory that refused input may need at its peak.
const maxRefused = 64 << 20

// aliases expand each other ten times over.
func aliases(levels rune) string {
	text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'a'+levels; c++ {
		text += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	return text
}

// refused is wrong only at its end, or in its metadata, so that a parser has all of it in memory.
func refused() map[string]struct {
	data map[string]string
	want string
} {
	const wrong = "kind: X\nmetadata: {labels: {a: 1}}\n"
	bomb := map[string]string{}
	for i := range 40 {
		bomb[fmt.Sprintf("k%d.br", i)] = strings.Repeat("# "+strings.Repeat(" ", 1<<16)+"\n", 30)
	}
	type c = struct {
		data map[string]string
		want string
	}
	one := func(text, want string) c { return c{map[string]string{"a": text}, want} }
	var keys strings.Builder
	for i := range maxDocumentNodes/2 - 20 {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	longText := "kind: X\nx: &x " + strings.Repeat("a", 100<<10) + "\nlist: [" + strings.Repeat("*x,", 2000) + "*x]\n"
	return map[string]c{
		"many keys":                            {bomb, "more than 32 MiB up to here when decompressed"},
		"one key":                              {map[string]string{"a.br": strings.Repeat(" ", maxPlainBytes+1)}, "more than 32 MiB up to here when decompressed"},
		"one dense value":                      {map[string]string{"a.br": "kind: X\nlist:\n" + strings.Repeat("- a\n", 1<<20)}, "document is larger than 2 MiB"},
		"dense lines":                          one("kind: X\nlist:\n"+strings.Repeat("- a\n", 500_000), "document has more than 100000 nodes"),
		"dense flow style":                     one("kind: X\nlist: ["+strings.Repeat("a,", 1_000_000)+"a]\n", "document has more than 100000 nodes"),
		"dense JSON":                           one(`{"kind":"X","list":[`+strings.Repeat(`{},`, 150_000)+`{}]}`, "document has more than 100000 nodes"),
		"denser JSON":                          one(`{"kind":"X","list":[`+strings.Repeat(`{},`, 600_000)+`{}]}`, "more than 500000 nodes up to here"),
		"JSON objects":                         one(strings.Repeat("{}", 1_000_000), "more than 500000 nodes up to here"),
		"documents":                            one(strings.Repeat("a: b\n---\n", maxDocuments+10), "more than 20000 documents"),
		"dense documents":                      one(strings.Repeat("a: ["+strings.Repeat("a,", 40_000)+"a]\n---\n", 9), "more than 500000 nodes up to here"),
		"deep JSON":                            one(`{"kind": "X", "deep": `+strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1)+`}`, "nested deeper than 256 levels"),
		"deep YAML":                            one("kind: X\ndeep: "+strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1), "nested deeper than 256 levels"),
		"aliases":                              one(aliases(9), "document has more than 100000 nodes"),
		"fewer aliases":                        one(aliases(5), "document has more than 100000 nodes"),
		"an alias of a long text":              one(longText, "document is larger than 2 MiB"),
		"an alias of a long binary":            one(strings.Replace(longText, "&x", "&x !!binary", 1), "document is larger than 2 MiB"),
		"an alias in flow style":               one("{kind: X, x: &x "+strings.Repeat("a", 100<<10)+", list: ["+strings.Repeat("*x,", 2000)+"*x]}\n", "document is larger than 2 MiB"),
		"an alias, and what does not belong":   one(strings.Replace(longText, "&x", "&x !!binary", 1)+"...\n*", "belongs to no document"),
		"an alias that has no end":             one("kind: X\nx: &x [*x]\n", "document has more than 100000 nodes"),
		"aliases in many documents":            one(strings.Repeat("---\nx: &x ["+strings.Repeat("1,", 99)+"1]\nlist: ["+strings.Repeat("*x,", 99)+"*x]\n", 100), "more than 500000 nodes up to here"),
		"aliases in many, in flow style":       one(strings.Repeat("---\n{x: &x ["+strings.Repeat("1,", 99)+"1], list: ["+strings.Repeat("*x,", 99)+"*x]}\n", 100), "more than 500000 nodes up to here"),
		"aliases of long texts in many":        one(strings.Repeat("---\nx: &x "+strings.Repeat("a", 1<<10)+"\nlist: ["+strings.Repeat("*x,", 1000)+"*x]\n", 40), "more than 32 MiB up to here when decompressed and with aliases"),
		"many keys and an alias":               one(wrong+"x: &x y\nz: *x\n"+keys.String(), "metadata.labels"),
		"lists and an alias":                   one(wrong+"x: &x y\nz: *x\nlist:\n"+strings.Repeat("- a\n", maxDocumentNodes/3-20), "metadata.labels"),
		"lists, of which one has many aliases": one(wrong+"x: &x ["+strings.Repeat("{},", 1000)+"1]\nlist: ["+strings.Repeat("*x,", 85)+"1]\n", "metadata.labels"),
		"broken at its end":                    one("kind: X\nlist:\n"+strings.Repeat("- a\n", maxDocumentNodes/3-20)+"- [\n", "invalid YAML"),
		"lists":                                one(wrong+"list:\n"+strings.Repeat("- a\n", maxDocumentNodes/3-20), "metadata.labels"),
		"mappings":                             one(wrong+"list:\n"+strings.Repeat("- {a: 1}\n", maxDocumentNodes/7-20), "metadata.labels"),
		"nested mappings":                      one(wrong+"list:\n"+strings.Repeat("- a:\n    b:\n      c: d\n", maxDocumentNodes/10-50), "metadata.labels"),
		"short mappings":                       one(wrong+"list:\n"+strings.Repeat("- a: 1\n", maxDocumentNodes/4-50), "metadata.labels"),
		"keys":                                 one(wrong+keys.String(), "metadata.labels"),
		"JSON mappings":                        one(`{"metadata":{"labels":{"a":1}},"list":[`+strings.Repeat(`{"a":1},`, maxDocumentNodes/4-20)+`1]}`, "metadata.labels"),
		"one long text":                        one(wrong+"text: "+strings.Repeat("a", maxDocumentBytes-100), "metadata.labels"),
		"escaped text":                         one(wrong+"text: "+strings.Repeat("<", maxDocumentBytes/2), "document is larger than 2 MiB"),
		"some escaped text":                    one(wrong+"text: "+strings.Repeat("<aaaaa", maxDocumentBytes/12), "metadata.labels"),
	}
}

// MR-7, MRB-1: input that is refused needs little memory, whatever it would unpack to.
func TestRefusedInputNeedsLittleMemory(t *testing.T) {
	for name, tc := range refused() {
		t.Run(name, func(t *testing.T) {
			values, stored := map[string][]byte{}, 0
			for key, value := range tc.data {
				values[key] = []byte(value)
				if strings.HasSuffix(key, ".br") {
					values[key] = compress(t, value)
				}
				stored += len(values[key])
			}
			tc.data = nil
			var result Result
			began := time.Now()
			peak := peakMemory(func() { result = decode(t, []Source{{Data: values}}) })
			t.Logf("%d KiB stored, peak %d MiB, %s", stored>>10, peak>>20, time.Since(began).Round(time.Millisecond))
			if peak += uint64(stored); peak > maxRefused {
				t.Errorf("peak %d MiB, want %d MiB at most", peak>>20, maxRefused>>20)
			}
			expect.True(t, len(result.Errors) == 1 && strings.Contains(result.Errors[0].Error(), tc.want),
				"got %d errors, the first of them %.300s, want one with %q", len(result.Errors), ErrorsMessage(result.Errors), tc.want)
		})
	}
}

// peakMemory returns by how much the heap grew at most while do ran, garbage included.
func peakMemory(do func()) uint64 {
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := heap()
	var peak atomic.Uint64
	peak.Store(before)
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				peak.Store(max(peak.Load(), heap()))
			}
		}
	}()
	do()
	peak.Store(max(peak.Load(), heap()))
	close(done)
	<-sampled
	return peak.Load() - before
}

func TestBudgetIsForAllSecrets(t *testing.T) {
	var many []Source
	for i := range maxSecrets + 1 {
		many = append(many, source(map[string]string{"a": foo})...)
		many[i].Secret.Name = fmt.Sprint("s", i)
	}
	large := make([]Source, 17)
	for i := range large {
		large[i] = Source{Data: map[string][]byte{"a": []byte("# " + strings.Repeat("x", 1<<20-2))}}
	}
	for name, tc := range map[string]struct {
		sources []Source
		want    string
	}{
		"Secrets": {many, "names more than 1000 Secrets"},
		"bytes":   {large, "have more than 16 MiB up to here"},
	} {
		t.Run(name, func(t *testing.T) {
			var sources Sources
			for i, one := range tc.sources {
				last := i == len(tc.sources)-1
				must.True(t, sources.Add(one) != last, "read on after Secret %d: %t", i, last)
			}
			result := decode(t, sources.All)
			expect.True(t, len(result.Objects) == 0 && len(result.Errors) == 1 && strings.Contains(result.Errors[0].Error(), tc.want),
				"got %d objects, %v", len(result.Objects), result.Errors)
		})
	}
}

func TestHonestManifestsAreNotRefused(t *testing.T) {
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec:\n" +
		strings.Repeat("  properties:\n    description: 'What it is for: this, that, and more'\n    type: string\n", 10_000)
	dashboard := "kind: ConfigMap\ndata:\n  dashboard.json: |\n" + strings.Repeat("    {\"panels\": [{\"id\": 1, \"type\": \"graph\", \"targets\": [{}]}]},\n", 16_000)
	quotedDashboard := "kind: ConfigMap\ndata:\n  dashboard.json: \"" + strings.Repeat(`{\"title\":\"Requests per second\",\"id\":1},`, 10_000) + "\"\n"
	for name, text := range map[string]string{
		"a definition of 30,000 lines":           definition,
		"a dashboard of a mebibyte":              dashboard,
		"half a mebibyte of dashboard in quotes": quotedDashboard,
		"an anchor and globs":                    "kind: X\na: &a {b: '*'}\nc: *a\n",
		"5,000 objects":                          strings.Repeat(foo+"  labels: {a: b}\ndata: {a: b, c: d}\n---\n", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			if result := decode(t, source(map[string]string{"a": text})); len(result.Errors) != 0 || len(result.Objects) == 0 {
				t.Errorf("%d bytes, %d objects, %v", len(text), len(result.Objects), result.Errors)
			}
		})
	}
}

// MR-7: a Secret that is named twice may have changed between the two reads.
func TestDecode_SecretInTwoVersions(t *testing.T) {
	large := source(map[string]string{"a": "x: &x " + strings.Repeat("a", 100<<10) + "\nlist: [" + strings.Repeat("*x,", 50) + "*x]\n"})
	small := source(map[string]string{"a": foo + "x: &x a\nlist: [*x]\n"})
	for _, sources := range [][]Source{append(large, small...), append(small, large...)} {
		if result := decode(t, sources); names(result) != "foo" || len(result.Errors) != 1 || !errors.Is(result.Errors[0], errTooLarge) {
			t.Errorf("got %d objects, %v", len(result.Objects), result.Errors)
		}
	}
}

// MRD-2, MRB-1: the limit of a document is for each of the JSON objects in a row. Objects after an error are not read, as nobody
// knows where the next object begins.
func TestDecode_LimitsEachJSONObject(t *testing.T) {
	text := strings.Repeat("}{\\\"", 20<<10)
	var list []string
	for i := range 30 {
		list = append(list, fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":"n%d"},"data":{"a":"%s"}}`, i, text))
	}
	broken := slices.Clone(list)
	broken[25] = strings.Replace(broken[25], `"data":`, `"data"`, 1)
	large := slices.Clone(list)
	large[20] = strings.Replace(large[20], text, strings.Repeat("a", maxDocumentBytes), 1)
	notUTF8 := slices.Replace(slices.Clone(list), 25, 26, "{\"a\":\"\xff\"}")
	for name, tc := range map[string]struct {
		text    string
		objects int
		want    string
	}{
		"in one line":             {strings.Join(list, ""), 30, ""},
		"one a line":              {strings.Join(list, "\n") + "\n\n", 30, ""},
		"with separators":         {strings.Join(list[:20], "\n") + "\n---\n" + strings.Join(list[20:], " "), 30, ""},
		"one is no JSON":          {strings.Join(broken, "\n"), 25, "index 25 in 'a.br' in secret 'ns/s': invalid JSON at byte " + fmt.Sprint(len(strings.Join(broken[:25], "\n")))},
		"and again after that":    {strings.Join(broken, "\n") + "\n---\n" + strings.Join(list[:22], ""), 47, "index 25 in"},
		"one is no UTF-8":         {strings.Join(notUTF8, "\n"), 29, "index 25 in 'a.br' in secret 'ns/s': document is not UTF-8"},
		"one is too large":        {strings.Join(large, "\n"), 20, "index 20 in 'a.br' in secret 'ns/s': document is larger than 2 MiB"},
		"YAML after them":         {strings.Join(list, "\n") + "\n" + foo, 30, "index 30 in 'a.br' in secret 'ns/s': invalid JSON at byte"},
		"a brace too many":        {strings.Join(list, "\n") + "}", 30, "index 30 in 'a.br' in secret 'ns/s': invalid JSON at byte"},
		"flow style is not split": {"{kind: X}, " + strings.Join(list, ", "), 0, "index 0 in 'a.br' in secret 'ns/s': document is larger than 2 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			result := decode(t, source(map[string]string{"a.br": string(compress(t, tc.text))}))
			expect.True(t, len(result.Objects) == tc.objects && (len(result.Errors) > 0) == (tc.want != ""),
				"got %d objects, %.300v; want %d", len(result.Objects), result.Errors, tc.objects)
			if tc.want != "" && (len(result.Errors) != 1 || !strings.Contains(result.Errors[0].Error(), tc.want)) {
				t.Errorf("got %.300v, want %s", result.Errors, tc.want)
			}
		})
	}
}

func TestDecodingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := Decode(ctx, source(map[string]string{"a": strings.Repeat("---\n[x]\n", 1000)}))
	expect.True(t, errors.Is(err, context.Canceled) && len(result.Errors) == 0,
		"got %v, %d errors", err, len(result.Errors))
}

// MRS-10: the first errors are told, then a count.
func TestMessageOfErrorsIsBounded(t *testing.T) {
	message := ErrorsMessage(decode(t, source(map[string]string{"a": strings.Repeat("---\n[x]\n", 10_000)})).Errors)
	if strings.Count(message, "Could not decode resource at index") != shownErrors || !strings.HasSuffix(message, "And 9980 more.]") || len(message) > 16<<10 {
		t.Errorf("%d bytes: %.100s … %s", len(message), message, message[len(message)-100:])
	}
}

// marker must not be seen in any error; the number is no line of any document here.
var markers = []string{"hunter2", "424242424"}

// broken are documents that fail in many ways; the marker goes to every place of each.
var broken = []string{
	"kind: Secret\nstringData:\n  ~: 'pass\"x'\n", "kind: Secret\nstringData:\n  ? [\"a\\\"x\"]\n  : x\n", "a: *x\n", "a: b: c\n", "{\"a", "- x\nx\n", "!!int x", "a: !!float x",
	"a: &x [*x]\n", "<<: x\na: b\n", "<<: [x]\n", "%YAML 3.0\n---\na: b\n", "%x\n", "a: \"\\x\"\n", "a: \"\\u12\"\n", "a: 'x\n", "a: `x\n", "a: @x\n", "a:\n\t- x\n", "!x a\n", "!<x a\n", "|x\n", "a: |x\n",
	"{\"a\":1}{\"b\":2}{x", "{\"a\":x}", "{\"a\":\"\\x\"}", "[x]", "x", "\"x\"", "metadata: {labels: {x: 1}}\nkind: a\n", "metadata: {annotations: {x: [x]}}\n", "metadata: [x]\n",
	"metadata: {name: [x]}\n", "kind: [x]\n", "apiVersion: {x: x}\n", "spec: {template: {metadata: {labels: {x: {x: x}}}}}\n", "!!binary x: y\n", "a: !!binary x\n", "a: !!timestamp x\n",
	"? {x: y}\n: z\n", "? &a x\n: *a\n? *b\n", "a: .nan\n? .inf\n: x\n", "{a: b}}", "\x00", "a: \xff\n", "a: !!bool x\n", "!!set {x}\n", "? !!null x\n: y\n",
}

// No text of a parser is passed on.
func TestErrorsDoNotRepeatContent(t *testing.T) {
	for _, document := range broken {
		for _, marker := range markers {
			for at := range len(document) + 1 {
				for _, text := range []string{document[:at] + marker + document[at:], document[:at] + "\"" + marker + "\"" + document[at:], document[:at] + "\\\"" + marker + document[at:]} {
					hides(t, marker, text)
				}
			}
		}
	}
}

func hides(t *testing.T, marker, text string) {
	t.Helper()
	message := ErrorsMessage(decode(t, source(map[string]string{"a": text, "b.br": text})).Errors)
	expect.False(t, strings.Contains(message, marker), "an error repeats the content of %q: %s", text, message)
}

func FuzzErrorsHideContent(f *testing.F) {
	for _, document := range broken {
		f.Add(document, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = max(at, 0) % (len(text) + 1)
		for _, marker := range markers {
			hides(t, marker, text[:at]+marker+text[at:])
		}
	})
}

func TestErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		foo + "---\na: b\nb: c: d\n": "index 1 in 'a' in secret 'ns/s': invalid YAML at line 7 of the value",
		"a: b\n--- # c\n\na: [\n":    "index 1 in 'a' in secret 'ns/s': invalid YAML at line 4 of the value",
	} {
		expect.Contains(t, ErrorsMessage(decode(t, source(map[string]string{"a": text})).Errors), want)
	}
}
