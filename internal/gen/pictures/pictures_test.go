package pictures

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

const folder = "../../../docs/pictures"

// TestFilesAreCurrent: the repository has the pictures that the tables give, and no other.
func TestFilesAreCurrent(t *testing.T) {
	found := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(path)] = string(content)
	}
	if diff := cmp.Diff(Files(), found); diff != "" {
		t.Errorf("docs/pictures, run make generate (-want +got):\n%s", diff)
	}
}

// element is one of an SVG file with its attributes and text.
type element struct {
	name, text string
	attributes map[string]string
}

func (e *element) number(t *testing.T, name string) int {
	t.Helper()
	if e.attributes[name] == "" {
		return 0
	}
	n, err := strconv.Atoi(e.attributes[name])
	if err != nil {
		t.Fatalf("%s of %v: %v", name, e, err)
	}
	return n
}

func parse(t *testing.T, content string) []*element {
	t.Helper()
	var all, open []*element
	decoder := xml.NewDecoder(strings.NewReader(content))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			all, open = append(all, e), append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text += string(token)
			}
		}
	}
}

// span returns where a text begins and ends.
func span(t *testing.T, e *element) (left, right int) {
	x, width := e.number(t, "x"), measure(e.attributes["class"], e.text)
	switch e.attributes["text-anchor"] {
	case "middle":
		return x - width/2, x + width/2
	case "end":
		return x - width, x
	}
	return x, x + width
}

// TestTextsFit: each picture is XML with a title and a description, its classes have a style for light and for dark mode, and no text
// leaves the page or the box that it stands in.
func TestTextsFit(t *testing.T) {
	light, dark, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	for name, content := range Files() {
		t.Run(name, func(t *testing.T) {
			elements := parse(t, content)
			if !slices.ContainsFunc(elements, func(e *element) bool { return e.name == "desc" && e.text != "" }) {
				t.Error("there is no description")
			}
			page := elements[slices.IndexFunc(elements, func(e *element) bool { return e.attributes["class"] == "page" })]
			for _, e := range elements {
				for mode, rules := range map[string]string{"light": light, "dark": dark} {
					if class := e.attributes["class"]; class != "" && !strings.Contains(rules, "."+class+" {") {
						t.Errorf("class %s has no style for %s mode", class, mode)
					}
				}
				if e.name == "text" {
					checkText(t, e, page, elements)
				}
			}
		})
	}
}

func checkText(t *testing.T, text, page *element, elements []*element) {
	t.Helper()
	left, right := span(t, text)
	y := text.number(t, "y")
	if left < 0 || right > page.number(t, "width") || y > page.number(t, "height") {
		t.Errorf("%q is at %d to %d, and leaves the page", text.text, left, right)
	}
	for _, e := range elements {
		class := e.attributes["class"]
		if e.name != "rect" || class != "part" && class != "ours" {
			continue
		}
		x, top := e.number(t, "x"), e.number(t, "y")
		end, bottom := x+e.number(t, "width"), top+e.number(t, "height")
		if y > top && y < bottom && left < end && right > x && (left < x || right > end) {
			t.Errorf("%q is at %d to %d, and leaves its box from %d to %d", text.text, left, right, x, end)
		}
	}
}

// TestStyleOfTheLandscape: the picture of the landscape, which is drawn by hand, has the same styles.
func TestStyleOfTheLandscape(t *testing.T) {
	content, err := os.ReadFile("../../../docs/landscape.svg")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "<style>\n")
	rules, _, _ := strings.Cut(rest, "  </style>")
	for rule := range strings.Lines(rules) {
		if !strings.Contains(style, rule) {
			t.Errorf("style.css lacks %s", strings.TrimSpace(rule))
		}
	}
}

// TestParticipants: each step names participants of its way.
func TestParticipants(t *testing.T) {
	for _, w := range ways {
		known := map[string]bool{}
		for _, p := range w.Places {
			for _, part := range p.Parts {
				known[part.Name] = true
			}
		}
		var check func([]step)
		check = func(steps []step) {
			for _, s := range steps {
				for _, b := range s.Block {
					check(b.Steps)
				}
				if s.Block == nil && (!known[s.From] || !known[s.To] || s.Text == "") {
					t.Errorf("%s: %v names no participant or has no text", w.File, s)
				}
			}
		}
		check(w.Steps)
	}
}

// TestEdges: each edge of the tables is in its picture, with its rule.
func TestEdges(t *testing.T) {
	files := Files()
	for file, table := range map[string]relation.Table{"graph.svg": relation.Watches, "graph-self-hosted.svg": relation.SelfHosted} {
		tips := map[string]bool{}
		for _, e := range parse(t, files[file]) {
			tips[e.text] = true
		}
		for _, a := range arrows(table) {
			if !tips[a.tip()] {
				t.Errorf("%s lacks %s", file, a.tip())
			}
		}
	}
}
