package auditlog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","requestURI":"/api/v1/secrets?a=b","verb":"get","user":{"username":"u","groups":["a","b"],"extra":{"x":["y"]}},` +
	`"objectRef":{"resource":"secrets","namespace":"n","name":"s","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":200},"requestReceivedTimestamp":"2026-11-25T00:00:00.000000Z",` +
	`"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"because"}}`

func read(t *testing.T, s Source) ([]Event, Summary, error) {
	t.Helper()
	if s.Keep == nil {
		s.Keep = func(*Event) bool { return true }
	}
	var all []Event
	summary, err := s.Read(func(e *Event) error { all = append(all, *e); return nil })
	return all, summary, err
}

// decode reads a line with one event.
func (e *Event) decode(line string) error {
	return decode([]byte(line), func(read *Event) { *e = *read })
}

// TestDecode is what is read of an event.
func TestDecode(t *testing.T) {
	whole := Event{
		Stage: "ResponseComplete", Verb: "get", RequestURI: "/api/v1/secrets?a=b", User: "u", Groups: []string{"a", "b"}, Resource: "secrets", Namespace: "n", Name: "s", Code: 200,
		Decision: "allow", Reason: "because", Received: "2026-11-25T00:00:00.000000Z",
	}
	impersonated := whole
	impersonated.User, impersonated.Groups = "i", []string{"c"}
	for name, c := range map[string]struct {
		line string
		want Event
		err  string
	}{
		"RPL-4/an event":                 {event, whole, ""},
		"RPL-4/white space":              {strings.ReplaceAll(event, `,"`, " ,\t\""), whole, ""},
		"RPL-1/an impersonated user":     {strings.Replace(event, `"stage"`, `"impersonatedUser":{"username":"i","groups":["c"]},"stage"`, 1), impersonated, ""},
		"RPL-4/escapes":                  {`{"kind":"Event","apiVersion":"audit.k8s.io\/v1","verb":"a\"\\\u00e4"}`, Event{Verb: `a"\ä`}, ""},
		"RPL-3/bodies":                   {`{"kind":"Event","apiVersion":"audit.k8s.io/v1","requestObject":{"a":[{"b":"}\\\""}]},"responseObject":null}`, Event{RequestObject: `{"a":[{"b":"}\\\""}]}`}, ""},
		"RPL-4/nothing but a type":       {`{"kind":"Event","apiVersion":"audit.k8s.io/v1","objectRef":null,"user":{},"annotations":{}}`, Event{}, ""},
		"RPL-4/another kind":             {`{"kind":"Status","apiVersion":"v1"}`, Event{}, "is no event"},
		"RPL-4/a list":                   {`[]`, Event{}, "is no JSON object"},
		"RPL-4/half an event":            {event[:100], Event{}, "is no JSON object"},
		"RPL-4/two events":               {event + event, Event{}, "is no JSON object"},
		"RPL-4/a code that is no number": {`{"kind":"Event","apiVersion":"audit.k8s.io/v1","responseStatus":{"code":"x"}}`, Event{}, "is no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			var got Event
			err := got.decode(c.line)
			if c.err != "" {
				expect.ErrorContains(t, err, c.err)
				return
			}
			diff := cmp.Diff(c.want, got)
			expect.True(t, err == nil && diff == "", "got %v: %s", err, diff)
		})
	}
}

// TestFiles: several files, compressed ones and standard input are read in their order; lines that are no events are named.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, content, 0o600))
		return path
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(strings.Replace(event, `"get"`, `"third"`, 1)))
	_ = z.Close()
	first := file("first.log", []byte(strings.Replace(event, `"get"`, `"first"`, 1)+"\n\nno event\r\n"+strings.Replace(event, `"get"`, `"second"`, 1)+"\n"))
	third := file("third.log.gz", zipped.Bytes())
	events, summary, err := read(t, Source{Files: []string{first, third, "-"}, Stdin: iotest.OneByteReader(strings.NewReader(event))})
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s %s %d", e.Verb, filepath.Base(e.File), e.Line))
	}
	diff := cmp.Diff([]string{"first first.log 1", "second first.log 4", "third third.log.gz 1", "get stdin 1"}, got)
	expect.True(t, err == nil && diff == "", "RPL-4: %v: %s", err, diff)
	if diff := cmp.Diff([]string{first + " line 3 is no JSON object"}, summary.Named); diff != "" || summary.Malformed != 1 || summary.Lines != 5 {
		t.Errorf("RPL-4: %+v: %s", summary, diff)
	}
	if _, summary, err := read(t, Source{Files: []string{file("bad.log", []byte(strings.Repeat("x\n", 20)))}}); !errors.Is(err, ErrNothing) || summary.Malformed != 20 || len(summary.Named) != namedLines {
		t.Errorf("RPL-4: a file without an event: got %+v, %v", summary, err)
	}
	if _, _, err := read(t, Source{Files: []string{filepath.Join(dir, "absent")}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, _, err := read(t, Source{Files: []string{"-"}, Stdin: iotest.ErrReader(errors.New("broken"))}); err == nil || err.Error() != "stdin: broken" {
		t.Errorf("got %v", err)
	}
	failing := Source{Files: []string{first, third}, Keep: func(*Event) bool { return true }}
	if _, err := failing.Read(func(*Event) error { return errors.New("no") }); err == nil || !strings.HasSuffix(err.Error(), "first.log line 1: no") {
		t.Errorf("got %v", err)
	}
}

// TestLongLines: lines of any length up to the limit are read, longer ones are counted, and the numbers of the lines after them are right.
func TestLongLines(t *testing.T) {
	long := func(size int) string { return strings.Replace(event, `"u"`, `"`+strings.Repeat("u", size)+`"`, 1) }
	text := strings.Join([]string{event, long(chunkSize), long(3 * chunkSize), long(lineLimit + chunkSize), event, long(2 * lineLimit)}, "\n")
	events, summary, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader(text)})
	var lines []int
	for _, e := range events {
		lines = append(lines, e.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 5}, lines); err != nil || diff != "" || summary.Lines != 6 ||
		!cmp.Equal(summary.Named, []string{"stdin line 4 is longer than 12 MiB", "stdin line 6 is longer than 12 MiB"}) {
		t.Errorf("RPL-4: %+v, %v: %s", summary, err, diff)
	}
}

// TestPropertyOfLines: whatever the lines are and however they come, each is read once, under its number.
func TestPropertyOfLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want []int
		for line := range rapid.IntRange(1, 40).Draw(t, "lines") {
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				text.WriteString("\n")
			case 1:
				text.WriteString("no event\n")
			case 2:
				text.WriteString(strings.Replace(event, `"u"`, `"`+strings.Repeat("u", rapid.IntRange(0, chunkSize).Draw(t, "size"))+`"`, 1) + "\n")
				want = append(want, line+1)
			default:
				text.WriteString(event + "\n")
				want = append(want, line+1)
			}
		}
		s := Source{Files: []string{"-"}, Stdin: iotest.HalfReader(strings.NewReader(text.String())), Keep: func(*Event) bool { return true }}
		var got []int
		if _, err := s.Read(func(e *Event) error { got = append(got, e.Line); return nil }); err != nil && !errors.Is(err, ErrNothing) {
			t.Fatal(err)
		}
		expect.DeepEqual(t, got, want, "RPL-4")
	})
}

// TestTable: cells are bounded, and beyond the bound counted together.
func TestTable(t *testing.T) {
	var table Table
	for i := range cellLimit + 5 {
		table.Add(Key{Rule: "SR-1", Client: fmt.Sprint(i), Was: "Allow", Is: "NoOpinion"}, &Event{Verb: "get"}, func(*Cell) {})
	}
	cells := table.Cells()
	if len(cells) != cellLimit+1 || cells[0].Client != Other || cells[0].Count != 5 || table.Total != cellLimit+5 {
		t.Errorf("RPL-6: got %d cells, the first is %+v", len(cells), cells[0])
	}
}

// TestProgress: reading tells how far it is, in bytes as they are stored, and never more than there are.
func TestProgress(t *testing.T) {
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write([]byte(strings.Repeat(event+"\n", 3000)))
	_ = zip.Close()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b.gz")}
	plain := []byte(strings.Repeat(event+"\n", 2000))
	for i, content := range [][]byte{plain, zipped.Bytes()} {
		must.Succeed(t, os.WriteFile(files[i], content, 0o600))
	}
	var known []Far
	_, _, err := read(t, Source{Files: files, Progress: func(far Far) { known = append(known, far) }})
	must.Succeed(t, err)
	all := int64(len(plain) + zipped.Len())
	for i, far := range known {
		if far.All != all || far.Bytes > all || i > 0 && (far.Bytes < known[i-1].Bytes || far.Lines < known[i-1].Lines) {
			t.Errorf("RPL-9: %d bytes are there, and %+v after %+v was told", all, far, known[max(0, i-1)])
		}
	}
	expect.True(t, len(known) >= 4 && known[len(known)-1] == (Far{Lines: 5000, Bytes: all, All: all}),
		"RPL-9: told %+v", known)
	known = nil
	if _, _, err := read(t, Source{Files: []string{"-"}, Stdin: strings.NewReader(event), Progress: func(far Far) { known = append(known, far) }}); err != nil || known[0].All != 0 {
		t.Errorf("RPL-9: of standard input %+v was told, %v", known, err)
	}
}

// TestOutcomes: a line of the log has the outcome of a request.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		event                 Event
		allowed, known, wrote bool
	}{
		"RPL-1/created":                   {Event{Verb: "create", Code: 201}, true, true, true},
		"RPL-1/the least code":            {Event{Verb: "patch", Code: 200}, true, true, true},
		"RPL-1/the largest code":          {Event{Verb: "delete", Code: 299}, true, true, true},
		"RPL-1/less":                      {Event{Verb: "update", Code: 199}, true, true, false},
		"RPL-1/more":                      {Event{Verb: "update", Code: 300}, true, true, false},
		"RPL-1/read":                      {Event{Verb: "get", Code: 200}, true, true, false},
		"RPL-1/a subresource":             {Event{Verb: "update", Subresource: "status", Code: 200}, true, true, true},
		"RPL-1/another subresource":       {Event{Verb: "update", Subresource: "scale", Code: 200}, true, true, false},
		"RPL-1/forbidden":                 {Event{Verb: "create", Code: 403}, false, true, false},
		"RPL-1/not found":                 {Event{Verb: "delete", Code: 404}, true, true, false},
		"RPL-1/nobody knows who asked":    {Event{Verb: "create", Code: 401}, true, false, false},
		"RPL-1/no code":                   {Event{Verb: "create"}, true, false, false},
		"RPL-1/the API server failed":     {Event{Verb: "create", Code: 500}, true, false, false},
		"RPL-1/by the decision":           {Event{Verb: "create", Decision: "allow", Code: 403}, true, true, false},
		"RPL-1/refused by the decision":   {Event{Verb: "create", Decision: "forbid", Code: 200}, false, true, true},
		"RPL-10/a dry run":                {Event{Verb: "patch", Code: 200, RequestURI: "/x?fieldManager=k&dryRun=All"}, true, true, false},
		"RPL-10/a collection":             {Event{Verb: "deletecollection", Code: 200}, true, true, true},
		"RPL-10/half a collection":        {Event{Verb: "deletecollection", Code: 409}, true, true, true},
		"RPL-10/no collection":            {Event{Verb: "deletecollection", Code: 404}, true, true, false},
		"RPL-1/the largest code that did": {Event{Verb: "create", Code: 499}, true, true, false},
	} {
		allowed, known := c.event.Allowed()
		if known != c.known || known && allowed != c.allowed {
			t.Errorf("%s: allowed %v, known %v", name, allowed, known)
		}
		expect.Equal(t, c.event.Wrote("status"), c.wrote, "RPL-3: %s: wrote", name)
	}
}
