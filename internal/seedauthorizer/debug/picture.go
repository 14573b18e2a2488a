package debug

import (
	"fmt"

	"github.com/espalier-project/espalier/internal/graph"
)

const (
	// drawn is the number of neighbours drawn on each side; more would need scrolling, and the list has them all.
	drawn     = 12
	boxWidth  = 300
	boxHeight = 40
	rowHeight = 52
	gap       = 110
	// labelLength is the number of letters that fit into a box.
	labelLength = 40
)

// picture is a vertex between those that lead to it and those that it leads to.
type picture struct {
	Width, Height int
	Boxes         []box
	Lines         []line
	// More has the numbers of neighbours that are not drawn.
	More []caption
	// Dashed is set if some line is dashed.
	Dashed bool
}

type box struct {
	reference
	X, Y, Width, Height int
	Self                bool
	// New is set if there is no such object yet.
	New   bool
	Label string
}

type line struct {
	Path string
	// Dashed are edges that count for their start only.
	Dashed bool
}

type caption struct {
	X, Y int
	Text string
}

func draw(n graph.Neighbourhood) *picture {
	in, out := n.In, n.Out
	rows := max(1, min(len(in), drawn), min(len(out), drawn))
	p := &picture{Width: 3*boxWidth + 2*gap + 20, Height: rows*rowHeight + 30}
	middle := 10 + (rows*rowHeight-(rowHeight-boxHeight))/2 - boxHeight/2
	self := box{reference: referenceTo(n.Vertex), X: 10 + boxWidth + gap, Y: middle, Width: boxWidth, Height: boxHeight, Self: true}
	self.Label = label(n.Vertex, labelLength)
	p.Boxes = append(p.Boxes, self)
	p.side(in, 10, rows, func(y int, dashed bool) line { return curve(10+boxWidth, y, self.X, middle+boxHeight/2, dashed) })
	right := self.X + boxWidth + gap
	p.side(out, right, rows, func(y int, dashed bool) line { return curve(self.X+boxWidth, middle+boxHeight/2, right, y, dashed) })
	return p
}

func (p *picture) side(neighbours []graph.Neighbour, x, rows int, connect func(y int, dashed bool) line) {
	shown := min(len(neighbours), drawn)
	top := (rows - shown) * rowHeight / 2
	for i, n := range neighbours[:shown] {
		y := 10 + top + i*rowHeight
		p.Boxes = append(p.Boxes, box{reference: referenceTo(n.Vertex), X: x, Y: y, Width: boxWidth, Height: boxHeight, Label: label(n.Vertex, labelLength)})
		p.Lines = append(p.Lines, connect(y+boxHeight/2, n.Class == graph.Direct))
		p.Dashed = p.Dashed || n.Class == graph.Direct
	}
	if rest := len(neighbours) - shown; rest > 0 {
		p.More = append(p.More, caption{x, p.Height - 8, fmt.Sprintf("and %d more, see below", rest)})
	}
}

func curve(x1, y1, x2, y2 int, dashed bool) line {
	bend := (x1 + x2) / 2
	return line{fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x1, y1, bend, y1, bend, y2, x2, y2), dashed}
}

// label shortens long names in the middle, where they differ least.
func label(v graph.Vertex, most int) string {
	text := v.Name
	if v.Namespace != "" {
		text = v.Namespace + "/" + v.Name
	}
	if len(text) > most {
		text = text[:most/2-1] + "…" + text[len(text)-most/2:]
	}
	return text
}
