package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// columns is the width of the terminal.
	columns = 116
	// A character of 13 px is 7.8 px wide in most fonts of one width; the last columns are rarely used.
	advance, lineHeight = 8, 18
	margin, bar         = 16, 28
)

// Classes of text; style has their colours, which stand on a dark ground of their own, so that a page may be dark or light.
const (
	plain   = ""
	bold    = "b"
	red     = "r"
	green   = "g"
	cyan    = "c"
	command = "p"
)

const style = `text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d4d7dd;white-space:pre}.b{font-weight:700}.r{fill:#ff8f88}.g{fill:#7ee2a0}.c{fill:#77cfe3}.p{fill:#ffffff;font-weight:700}`

// span is some text of one class.
type span struct{ class, text string }

// picture draws a terminal with a session.
func picture(name string, lines []string) string {
	var rows [][]span
	for _, line := range lines {
		rows = append(rows, fold(coloured(line))...)
	}
	width, height := columns*advance+2*margin, bar+len(rows)*lineHeight+margin
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Terminal: %s">`+"\n", width, height, width, height, name)
	fmt.Fprintf(&out, "<title>Terminal: %s</title>\n<style>%s</style>\n", name, style)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="#1b1f27"/>`+"\n", width, height)
	for i, colour := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&out, `<circle cx="%d" cy="14" r="5" fill="%s"/>`+"\n", margin+5+i*18, colour)
	}
	for i, row := range rows {
		fmt.Fprintf(&out, `<text x="%d" y="%d" xml:space="preserve">`, margin, bar+(i+1)*lineHeight-4)
		for _, s := range row {
			if text := html.EscapeString(s.text); s.class == plain {
				out.WriteString(text)
			} else {
				fmt.Fprintf(&out, `<tspan class="%s">%s</tspan>`, s.class, text)
			}
		}
		out.WriteString("</text>\n")
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// label is a line of why with the name of its part.
var label = regexp.MustCompile(`^([A-Z][A-Za-z ]{3,13}[a-z]) {2,}`)

// coloured returns a line with the colours that it has on a terminal.
func coloured(line string) []span {
	switch {
	case strings.HasPrefix(line, prompt):
		return []span{{green, prompt}, {command, line[len(prompt):]}}
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return []span{{bold, line}}
	case strings.HasPrefix(line, "@@ "):
		return []span{{cyan, line}}
	case strings.HasPrefix(line, "-"):
		return []span{{red, line}}
	case strings.HasPrefix(line, "+"):
		return []span{{green, line}}
	}
	if found := label.FindStringSubmatch(line); found != nil {
		return []span{{cyan, found[1]}, {plain, line[len(found[1]):]}}
	}
	return []span{{plain, line}}
}

// fold breaks a line where the terminal ends.
func fold(line []span) [][]span {
	rows, row, left := [][]span{}, []span{}, columns
	for _, s := range line {
		for text := s.text; text != ""; {
			end := len(text)
			if n := utf8.RuneCountInString(text); n > left {
				end = len(string([]rune(text)[:left]))
			}
			row = append(row, span{s.class, text[:end]})
			left -= utf8.RuneCountInString(text[:end])
			if text = text[end:]; text != "" {
				rows, row, left = append(rows, row), nil, columns
			}
		}
	}
	return append(rows, row)
}
