package auditlog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestDecode_Fields: fields that do not matter may have any form; a field that matters and has another form makes a line no event.
func TestDecode_Fields(t *testing.T) {
	const begin = `{"kind":"Event","apiVersion":"audit.k8s.io/v1",`
	for name, c := range map[string]struct {
		line string
		want *Event
	}{
		"RPL-4/values that do not matter": {begin + `"a":{"b":["x]}\"",{"c":-1.5e3}],"d":{}},"e":[],"f":true,"g":null,"h":"\\","i":1}`, &Event{}},
		"RPL-4/no values":                 {begin + `"user":null,"objectRef":null,"responseStatus":null,"annotations":null,"verb":null,"requestObject":null}`, &Event{}},
		"RPL-4/lists of nothing":          {begin + `"user":{"groups":null},"impersonatedUser":{"groups":[]}}`, &Event{}},
		"RPL-4/a list with null":          {begin + `"user":{"groups":["a",null,"b"]}}`, &Event{Groups: []string{"a", "", "b"}}},
		"RPL-1/nobody is impersonated":    {begin + `"user":{"username":"u","groups":["a"]},"impersonatedUser":{"groups":["b"]}}`, &Event{User: "u", Groups: []string{"a"}}},
		"RPL-1/all of an object":          {begin + `"objectRef":{"apiGroup":"g","resource":"r","subresource":"s","namespace":"n","name":"m","uid":"u"}}`, &Event{APIGroup: "g", Resource: "r", Subresource: "s", Namespace: "n", Name: "m"}},
		"RPL-3/a body that is a number":   {begin + `"requestObject":12,"responseObject":[1]}`, &Event{RequestObject: "12", ResponseObject: "[1]"}},
		"RPL-1/a code among others":       {begin + `"responseStatus":{"a":[1],"code": 409 ,"b":"c"}}`, &Event{Code: 409}},
		"RPL-4/nothing":                   {``, nil},
		"RPL-4/a verb that is a number":   {begin + `"verb":1}`, nil},
		"RPL-4/a user that is a text":     {begin + `"user":"u"}`, nil},
		"RPL-4/groups that are a text":    {begin + `"user":{"groups":"a"}}`, nil},
		"RPL-4/a group that is a number":  {begin + `"user":{"groups":[1]}}`, nil},
		"RPL-1/a code that is a text":     {begin + `"responseStatus":{"code":"200"}}`, nil},
		"RPL-4/more after it":             {begin + `"a":1}}`, nil},
		"RPL-4/a version of another kind": {`{"kind":"Event","apiVersion":"v1"}`, nil},
		"RPL-4/a kind of that version":    {`{"kind":"Policy","apiVersion":"audit.k8s.io/v1"}`, nil},
	} {
		var got Event
		err := got.decode(c.line)
		if c.want == nil {
			expect.Error(t, err, "%s: got %+v", name, got)
			continue
		}
		diff := cmp.Diff(*c.want, got)
		expect.True(t, err == nil && diff == "", "%s: got %v: %s", name, err, diff)
	}
}

// TestRequests: what was asked, in a line.
func TestRequests(t *testing.T) {
	for want, e := range map[string]Event{
		"get pods":                        {Verb: "get", Resource: "pods"},
		"get pods n/a":                    {Verb: "get", Resource: "pods", Namespace: "n", Name: "a"},
		"list pods n":                     {Verb: "list", Resource: "pods", Namespace: "n"},
		"get nodes a":                     {Verb: "get", Resource: "nodes", Name: "a"},
		"update deployments.apps/scale a": {Verb: "update", APIGroup: "apps", Resource: "deployments", Subresource: "scale", Name: "a"},
	} {
		expect.Equal(t, Request(&e), want, "RPL-2")
	}
}

// TestCells: a cell has the first of its requests as an example and up to ten verbs; the largest counts come first, then the order of the rules.
func TestCells(t *testing.T) {
	var table Table
	described := 0
	add := func(rule, client, resource, is, verb string, line int) {
		table.Add(Key{rule, client, resource, "Allow", is}, &Event{File: "f", Line: line, Verb: verb, Resource: resource}, func(c *Cell) {
			described++
			c.Known, c.Missing = "log", []string{"a -> b", "c -> d"}
		})
	}
	for n := range 12 {
		add("SR-1", "gardenlet", "pods", "Deny", fmt.Sprintf("verb-%02d", 11-n), n+1)
	}
	for n, key := range [][4]string{{"SR-3", "a", "pods", "Deny"}, {"SR-2", "b", "pods", "Deny"}, {"SR-2", "a", "secrets", "Deny"}, {"SR-2", "a", "pods", "NoOpinion"}, {"SR-2", "a", "pods", "Deny"}, {"", "a", "", "Deny"}} {
		add(key[0], key[1], key[2], key[3], "get", n+20)
	}
	add("SR-1", "gardenlet", "pods", "Deny", "verb-05", 99)
	var order []string
	for _, c := range table.Cells() {
		order = append(order, fmt.Sprintf("%d %s %s %s %s %s", c.Count, c.Rule, c.Client, c.Resource, c.Is, c.At))
	}
	want := []string{
		"13 SR-1 gardenlet pods Deny f line 1", "1  a  Deny f line 25", "1 SR-2 a pods Deny f line 24", "1 SR-2 a pods NoOpinion f line 23", "1 SR-2 a secrets Deny f line 22",
		"1 SR-2 b pods Deny f line 21", "1 SR-3 a pods Deny f line 20",
	}
	expect.DeepEqual(t, order, want, "RPL-2")
	first := table.Cells()[0]
	if verbs := first.Verbs; len(verbs) != 10 || !slices.IsSorted(verbs) || verbs[0] != "verb-02" || first.Example != "verb-11 pods" {
		t.Errorf("RPL-2: the verbs are %v, the example is %s", verbs, first.Example)
	}
	expect.True(t, described == 7 && table.Total == 19,
		"RPL-2: %d cells are described, %d differences are counted", described, table.Total)
	var out bytes.Buffer
	small := Table{}
	small.Add(Key{"SR-1", "gardenlet", "pods", "Allow", "Deny"}, &Event{File: "f", Line: 1, Verb: "get", Resource: "pods"}, func(c *Cell) { c.Known, c.Missing = "log", []string{"a -> b", "c"} })
	small.Add(Key{"", "x", "", "Allow", "Deny"}, &Event{File: "f", Line: 2, Verb: "list"}, func(*Cell) {})
	text := `COUNT  RULE  CLIENT     RESOURCE  VERBS  WAS    IS    KNOWN FROM  EXAMPLE            MISSING
1      -     x          -         list   Allow  Deny  -           list  (f line 2)   -
1      SR-1  gardenlet  pods      get    Allow  Deny  log         get pods (f line 1)  a -> b
`
	if err := small.Write(&out, "was", "is"); err != nil || strings.Join(strings.Fields(out.String()), " ") != strings.Join(strings.Fields(text), " ") {
		t.Errorf("RPL-2: %v:\n%s", err, out.String())
	}
	harmful := Table{}
	harmful.Add(Key{Rule: "SR-1", Client: "gardenlet", Was: "Allow", Is: "Deny"}, &Event{File: "f", Line: 1, Verb: "get", Resource: "pods", Namespace: "n\t1\n0 of 6", Name: "\x1b[2J\u009b31m\u202eevil\xff"}, func(*Cell) {})
	out.Reset()
	if err := harmful.Write(&out, "was", "is"); err != nil || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), `get pods n 1 0 of 6/\u001b[2J\u009b31m\u202eevil\ufffd (f line 1)`) {
		t.Errorf("CLI-40: %v: %q", err, out.String())
	}
	for n := range 3 {
		expect.Error(t, small.Write(&failingWriter{left: n}, "was", "is"),
			"RPL-2: a write that fails after %d of them is no error", n)
	}
}

// failingWriter fails after some writes.
type failingWriter struct{ left int }

func (f *failingWriter) Write(text []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("full")
	}
	return min(1, len(text)), nil
}

// TestOther: beyond the limit differences are counted by both decisions alone, and known ones as before.
func TestOther(t *testing.T) {
	var table Table
	described := map[string]bool{}
	add := func(client, is string) {
		table.Add(Key{Rule: "SR-1", Client: client, Was: "Allow", Is: is}, &Event{Verb: "get"}, func(c *Cell) { described[c.Client] = true })
	}
	for n := range cellLimit {
		add(fmt.Sprint(n), "Deny")
	}
	for _, c := range [][2]string{{"x", "Deny"}, {"y", "Deny"}, {"z", "NoOpinion"}, {"0", "Deny"}} {
		add(c[0], c[1])
	}
	got := map[string]int{}
	for _, c := range table.Cells() {
		if c.Count > 1 || c.Client == Other {
			got[c.Rule+" "+c.Client+" "+c.Is] = c.Count
		}
	}
	expect.DeepEqual(t, got, map[string]int{"SR-1 0 Deny": 2, " <other> Deny": 2, " <other> NoOpinion": 1}, "RPL-6")
	expect.True(t, len(described) == cellLimit && !described[Other], "RPL-6: %d cells are described", len(described))
}

// TestKept: events that are of no interest are counted and not handed over; the bytes of all lines count.
func TestKept(t *testing.T) {
	text := strings.Repeat(event+"\n", 3) + strings.Replace(event, `"get"`, `"list"`, 1) + "\n\n"
	events, summary, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader(text), Keep: func(e *Event) bool { return e.Verb == "list" }})
	expect.True(t, err == nil && len(events) == 1 && events[0].Line == 4 && summary.Lines == 4 && summary.Malformed == 0,
		"RPL-4: got %d events, %+v, %v", len(events), summary, err)
	if _, summary, err := read(t, Source{}); !errors.Is(err, ErrNothing) || summary.Lines != 0 {
		t.Errorf("RPL-4: of no file: %+v, %v", summary, err)
	}
}

// TestMalformed: the first ten malformed lines of all are named, whichever chunk they are in.
func TestMalformed(t *testing.T) {
	line := strings.Repeat("x", chunkSize/4) + "\n"
	_, summary, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader(event + "\n" + strings.Repeat(line, 3*namedLines))})
	var want []string
	for n := range namedLines {
		want = append(want, fmt.Sprintf("stdin line %d is no JSON object", n+2))
	}
	if diff := cmp.Diff(want, summary.Named); err != nil || diff != "" || summary.Malformed != 3*namedLines {
		t.Errorf("RPL-4: %d malformed, %v: %s", summary.Malformed, err, diff)
	}
	if _, _, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader("x\n")}); !errors.Is(err, ErrNothing) || err.Error() != "no line is an audit event: stdin line 1 is no JSON object" {
		t.Errorf("RPL-4: got %v", err)
	}
}

// TestBrokenFiles: a compressed file that is cut off is an error with its name, before and after the first chunk.
func TestBrokenFiles(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(strings.Repeat(event+"\n", 10)))
	_ = z.Close()
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"RPL-4/a header that is none": {[]byte("\x1f\x8b\x00no gzip at all"), "gzip: invalid header"},
		"RPL-4/cut off":               {zipped.Bytes()[:zipped.Len()-12], "unexpected EOF"},
	} {
		path := filepath.Join(t.TempDir(), "a.gz")
		must.Succeed(t, os.WriteFile(path, c.content, 0o600))
		if _, _, err := read(t, Source{Files: []string{path}}); err == nil || err.Error() != path+": "+c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestStops: if an event cannot be handled nothing more is read.
func TestStops(t *testing.T) {
	endless := &countingReader{}
	s := Source{Files: []string{"-"}, Stdin: endless, Keep: func(*Event) bool { return true }}
	_, err := s.Read(func(*Event) error { return io.ErrShortWrite })
	expect.True(t, errors.Is(err, io.ErrShortWrite) && err.Error() == "stdin line 1: short write", "RPL-9: got %v", err)
}

// countingReader has lines without end.
type countingReader struct{ lines int }

func (r *countingReader) Read(into []byte) (int, error) {
	r.lines++
	return copy(into, event+"\n"), nil
}
