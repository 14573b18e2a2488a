package decode

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// TestDecode_SeparatesDocuments lists separators, blank lines, and the ends after which a document may follow (MRB-1).
func TestDecode_SeparatesDocuments(t *testing.T) {
	for line, want := range map[string]struct {
		rest string
		is   bool
	}{
		"---": {"", true}, "---\n": {"", true}, "--- \n": {"", true}, "---\ta: b\n": {"\ta: b\n", true}, "--- # x\n": {"", true}, "--- # x": {" # x", true},
		"---a": {"", false}, "--": {"", false}, " ---\n": {"", false}, "---#\n": {"", false}, "---\r\n": {"", true}, "--- # x\u0085a\n": {" # x\u0085a\n", true},
	} {
		if rest, is := separator([]byte(line)); string(rest) != want.rest || is != want.is {
			t.Errorf("MRB-1: separator %q: %q, %t, want %q, %t", line, rest, is, want.rest, want.is)
		}
	}
	for line, want := range map[string]bool{
		"": true, "\n": true, " \t\r\n": true, "# x\n": true, "  # x\r\n": true, "# x": false, "# x\ry\n": false, "# x\u2028y\n": false, "a\n": false, "\"#\"\n": false, "$\n": false,
	} {
		expect.Equal(t, blank([]byte(line)), want, "MRB-1: blank %q", line)
	}
	for part, want := range map[string]bool{
		"---": true, "a: b\n...\n": true, "a: b\n---": true, "a: b\r---\n": true, "a: b\u0085...\n": true, "a: ---\n": false, "a: b---\n...": true, "a: ---\n---": true,
		"a: -- -\n": false, "a: ......\n": false, "": false,
	} {
		expect.Equal(t, hasMark([]byte(part)), want, "MRB-1: a mark in %q", part)
	}
	for part, want := range map[string]bool{
		"a: b\n": false, "z: b\n": false, "A: b\n": false, "Z: b\n": false, "0: b\n": false, "9: b\n": false, "_: b\n": false, "\"a\": b\n": false, "'a': b\n": false,
		"- a\n": true, "{a: b}\n": true, "/: b\n": true, ":\n": true, "@: b\n": true, "[: b\n": true, "`: b\n": true, "é: b\n": true, " a: b\n": true, "!: b\n": true, "#\n\n&: b\n": true,
		"# x\n\na: b\n": false, "a: b\n---\n": true, "": false, "# x\n": false,
	} {
		expect.Equal(t, mayGoOn([]byte(part)), want, "MRB-1: something may follow %q", part)
	}
	for text, want := range map[string]int{"": 0, "{}": 2, "[]": 2, "[] {": 2, "{}{}": 4, "{]": 2, "{\"}\"": 0, "}": 0, "[\"a\\\"]\"]x": 8} {
		expect.Equal(t, completeObjects([]byte(text)), want, "MRD-2: objects in %q are complete up to", text)
	}
}

// TestDecode_AcceptsExactBudgets: the most that a ManagedResource may have is accepted, and one more is not (T3-6).
func TestDecode_AcceptsExactBudgets(t *testing.T) {
	value := []byte("a: b\n---\nc: d\n")
	spent := newBudget()
	must.Succeed(t, spent.spend(t.Context(), "x", value))
	full := newBudget()
	for name, c := range map[string]struct {
		field func(*budget) *int
		used  int
		want  string
	}{
		"bytes of values": {func(b *budget) *int { return &b.valueBytes }, full.valueBytes - spent.valueBytes, "MiB up to here"},
		"documents":       {func(b *budget) *int { return &b.documents }, full.documents - spent.documents, "documents up to here"},
		"nodes":           {func(b *budget) *int { return &b.nodes }, full.nodes - spent.nodes, "nodes up to here"},
		"plain bytes":     {func(b *budget) *int { return &b.plainBytes }, full.plainBytes - spent.plainBytes, "when decompressed"},
	} {
		must.True(t, c.used > 0, "%s: %d are used", name, c.used)
		for more, refused := range map[int]bool{0: false, 1: false, -1: true} {
			b := newBudget()
			*c.field(b) = c.used + more
			if err := b.spend(t.Context(), "x", value); (err != nil) != refused || refused && !strings.Contains(err.Error(), c.want) {
				t.Errorf("T3-6/%s: %d are used, there are %d: %v", name, c.used, c.used+more, err)
			}
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	expect.ErrorIs(t, newBudget().spend(ended, "x", value), context.Canceled, "T3-6: measured although nobody waits")
}

// TestDecode_CountsDocuments: documents are counted as they are decoded, and the first one beyond the limit is reported (T3-6).
func TestDecode_CountsDocuments(t *testing.T) {
	value := []byte("{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"}}\n{\"kind\":\"A\",\"metadata\":{\"name\":\"b\"}}\n")
	for allowed, want := range map[int]int{3: 2, 2: 2, 1: 1, 0: 0} {
		left := newBudget()
		left.documents = allowed
		objects, errs := decodeValue(t.Context(), Place{Key: "x"}, value, left)
		expect.True(t, len(objects) == want && (len(errs) > 0) == (allowed < 2),
			"T3-6: of 2 documents %d are allowed: %d objects, %v", allowed, len(objects), errs)
	}
}

// TestErrors_NameTwenty: a message names twenty errors, and says how many there are beside them (MRS-10).
func TestErrors_NameTwenty(t *testing.T) {
	for n, want := range map[int]string{1: "e0.]", shownErrors: "e19.]", shownErrors + 1: "e19. And 1 more.]", shownErrors + 2: "e19. And 2 more.]"} {
		var errs []*Error
		for i := range n {
			errs = append(errs, &Error{Place: Place{Key: "x"}, Err: fmt.Errorf("e%d", i)})
		}
		got := ErrorsMessage(errs)
		expect.True(t, strings.HasSuffix(got, want), "MRS-10: %d errors: %s", n, got)
	}
}
