// Package plaintext prints text from other sources, such as names in a log, so that it cannot control a terminal
// (CLI-40).
//
// A character that is not printable (control characters, characters that change the direction of text, invalid UTF-8)
// is printed as \uXXXX, which is its escape in JSON strings, too. Writer does this for everything that an executable
// prints; Line also keeps a text in its line.
package plaintext

import (
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns a text as one line: a space for each line break and tab, an escape for any other unprintable character.
func Line(text string) string {
	if !needsEscape(text) && !strings.ContainsAny(text, "\n\t") {
		return text
	}
	return string(escape(nil, strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text), false))
}

// Lines returns texts as one line each.
func Lines(texts []string) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = Line(text)
	}
	return lines
}

// StyledLine is Line for a text with the colours that Writer passes on.
func StyledLine(text string) string {
	return string(escape(nil, strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text), true))
}

// Writer escapes the text that it passes on. Line breaks, tabs and colours pass.
type Writer struct {
	mu sync.Mutex
	to io.Writer
	// rest is the beginning of a character whose end was not written yet.
	rest []byte
}

// NewWriter returns a Writer; it leaves a Writer as it is.
func NewWriter(to io.Writer) *Writer {
	if w, is := to.(*Writer); is {
		return w
	}
	return &Writer{to: to}
}

// Unwrap returns the writer behind a Writer, or the writer itself.
func Unwrap(out io.Writer) io.Writer {
	if w, is := out.(*Writer); is {
		return w.to
	}
	return out
}

// Write implements io.Writer.
func (w *Writer) Write(content []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := content
	if len(w.rest) > 0 {
		all = slices.Concat(w.rest, content)
	}
	end := len(all)
	for n := 1; n < utf8.UTFMax && n <= len(all); n++ {
		if last := all[len(all)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				end -= n
			}
			break
		}
	}
	text := string(all[:end])
	w.rest = append([]byte(nil), all[end:]...)
	if needsEscape(text) {
		text = string(escape(nil, text, true))
	}
	if _, err := io.WriteString(w.to, text); err != nil {
		return 0, err
	}
	return len(content), nil
}

func needsEscape(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return true
		}
	}
	return false
}

// colours are the sequences that the executables print themselves.
var colours = []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"}

func escape(to []byte, text string, styled bool) []byte {
	for i := 0; i < len(text); {
		if styled && text[i] == '\x1b' {
			if n := len(colourAt(text[i:])); n > 0 {
				to, i = append(to, text[i:i+n]...), i+n
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		invalid := r == utf8.RuneError && size == 1
		if !invalid && (unicode.IsPrint(r) || r == '\n' || r == '\t') {
			to = append(to, text[i:i+size]...)
		} else {
			to = appendEscape(to, r)
		}
		i += size
	}
	return to
}

func colourAt(text string) string {
	for _, colour := range colours {
		if strings.HasPrefix(text, colour) {
			return colour
		}
	}
	return ""
}

func appendEscape(to []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	for _, unit := range utf16.AppendRune(nil, r) {
		to = append(to, '\\', 'u', digits[unit>>12], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
	}
	return to
}
