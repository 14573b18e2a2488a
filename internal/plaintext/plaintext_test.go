package plaintext

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/espalier-project/espalier/test/expect"
	"github.com/espalier-project/espalier/test/must"
)

// harmful are all characters that steer a terminal or change the order in which text is seen.
var harmful = sync.OnceValue(func() []rune {
	var all []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			all = append(all, r)
		}
	}
	return all
})

// TestHarmful: no control, format or direction character, and no invalid byte, is printed as it is.
func TestHarmful(t *testing.T) {
	var bytes []string
	for b := 0x80; b <= 0xff; b++ {
		bytes = append(bytes, string([]byte{byte(b)}))
	}
	for _, r := range harmful() {
		bytes = append(bytes, string(r))
	}
	for _, bad := range bytes {
		var out strings.Builder
		must.Succeed(t, expect.ErrorOf(NewWriter(&out).Write([]byte("a"+bad+"b"))))
		if bad != "\n" && bad != "\t" && (out.String() == "a"+bad+"b" || !strings.HasPrefix(out.String(), `a\u`) || !strings.HasSuffix(out.String(), "b")) {
			t.Errorf("CLI-40: %q is printed as %q", bad, out.String())
		}
		for _, line := range []string{Line("a" + bad + "b"), StyledLine("a" + bad + "b")} {
			expect.True(t, !strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) && utf8.ValidString(line),
				"CLI-40: the line of %q is %q", bad, line)
		}
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"a name":            "a name",
		"two\nlines\tand\r": "two lines and ",
		"\x1b[31mred":       `\u001b[31mred`,
		"ä 日本 ✓":            "ä 日本 ✓",
		"\u202eevil\u009b":  `\u202eevil\u009b`,
		"\xff\xc3":          `\ufffd\ufffd`,
		"\U000e0041":        `\udb40\udc41`,
	} {
		expect.DeepEqual(t, Lines([]string{text}), []string{want}, "CLI-40")
	}
	expect.Equal(t, StyledLine("\x1b[31mred\x1b[0m\x1b[2J\n"), "\x1b[31mred\x1b[0m"+`\u001b[2J `+"", "CLI-40")
}

// TestWriter: our colours pass, and a writer of a writer escapes once.
func TestWriter(t *testing.T) {
	var out strings.Builder
	w := NewWriter(NewWriter(&out))
	n, err := w.Write([]byte("\x1b[1ma\x1b[0m\tb\x1b]0;title\x07\n"))
	if want := "\x1b[1ma\x1b[0m\tb" + `\u001b]0;title\u0007` + "\n"; err != nil || n != 22 || out.String() != want || Unwrap(w) != &out || Unwrap(&out) != &out {
		t.Errorf("CLI-40: %d, %v: got %q, want %q", n, err, out.String(), want)
	}
	expect.Succeed(t, expect.ErrorOf(NewWriter(iotest.TruncateWriter(nil, 0)).Write(nil)))
	expect.Error(t, expect.ErrorOf(NewWriter(failing{}).Write([]byte("a"))), "CLI-40: a failure is lost")
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// TestPropertyOfWriter: a text is printed alike however it is cut, printable text stays as it is, and JSON has the same values afterwards.
func TestPropertyOfWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + string(rapid.SampledFrom(harmful()).Draw(t, "harmful"))
		content, err := json.Marshal(map[string]string{text: text})
		must.Succeed(t, err)
		var whole, cut strings.Builder
		_, _ = NewWriter(&whole).Write(content)
		w := NewWriter(&cut)
		for rest := content; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			must.Succeed(t, expect.ErrorOf(w.Write(rest[:n])))
			rest = rest[n:]
		}
		expect.Equal(t, whole.String(), cut.String(), "CLI-40: %q is printed as %q in parts", whole.String(), cut.String())
		var read map[string]string
		if err := json.Unmarshal([]byte(whole.String()), &read); err != nil || read[text] != text {
			t.Fatalf("CLI-40: %v: %q", err, whole.String())
		}
	})
}
