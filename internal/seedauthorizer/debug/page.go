package debug

import (
	_ "embed"
	"html/template"
	"strings"
)

//go:embed page.html
var pageText string

// page keeps the listing in the form that scripts parse (DBG-5 to DBG-7): one line for each entry, with a bar in
// front and a break at its end.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"dashes": func() string { return strings.Repeat("-", 79) },
	"indent": func(levels int) template.HTML { return template.HTML(strings.Repeat("&nbsp;&nbsp;", levels)) }, //nolint:gosec // A constant.
	"join":   func(path []string) string { return strings.Join(path, " -> ") },
	"title":  title,
}).Parse(strings.ReplaceAll(pageText, "~\n", "")))

// title capitalizes the first letter of a text.
func title(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
