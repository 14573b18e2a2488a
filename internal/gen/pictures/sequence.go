package pictures

import "fmt"

// way is a picture of what happens from top to bottom between participants.
type way struct {
	File, Title string
	// Description is read out instead of the picture.
	Description string
	Places      []place
	Steps       []step
}

// place is a cluster or a process with the participants in it.
type place struct {
	Name  string
	Parts []part
}

// part is a participant; an Ours is a part of an executable of this project.
type part struct {
	Name string
	Ours bool
}

// step is a message from a participant to another one or itself, or a block of steps.
type step struct {
	From, To, Text string
	// Reply marks an answer or an event.
	Reply bool
	// Block are the branches of a step that has no message: one for a loop, several for alternatives.
	Block []branch
}

// branch has the steps that happen under a condition.
type branch struct {
	Label string
	Steps []step
}

// The measures of a sequence, in pixels.
const (
	pageWidth  = 1060
	pageMargin = 16
	placeGap   = 14
	partHeight = 34
	partTop    = 58
	lineHeight = 18
	loopWidth  = 26
)

// sequence is a way that is being drawn.
type sequence struct {
	canvas
	way     *way
	center  map[string]int
	column  int
	y       int
	indents int
}

func (w *way) draw() string {
	s := &sequence{way: w, center: map[string]int{}, y: partTop + partHeight + 14}
	parts := 0
	for _, p := range w.Places {
		parts += len(p.Parts)
	}
	s.column = (pageWidth - 2*pageMargin - (len(w.Places)-1)*placeGap) / parts
	s.arrange()
	messages := s.inner(0)
	messages.steps(w.Steps)
	height := messages.y + 34
	s.background(height)
	s.elements.WriteString(messages.elements.String())
	return s.picture(pageWidth, height, w.Title, w.Description)
}

// inner goes on where the sequence is, with elements of its own that are put over those of the sequence.
func (s *sequence) inner(indents int) *sequence {
	return &sequence{way: s.way, center: s.center, column: s.column, y: s.y, indents: s.indents + indents}
}

// arrange gives each participant its column.
func (s *sequence) arrange() {
	x := pageMargin
	for _, p := range s.way.Places {
		for _, part := range p.Parts {
			s.center[part.Name] = x + s.column/2
			x += s.column
		}
		x += placeGap
	}
}

// background draws the places, the participants and their lifelines.
func (s *sequence) background(height int) {
	x := pageMargin
	for _, p := range s.way.Places {
		width := len(p.Parts) * s.column
		s.box("cluster", x, pageMargin, width, height-2*pageMargin, 10)
		s.text("head", x+18, 44, "", p.Name)
		for _, part := range p.Parts {
			s.participant(part, height)
		}
		x += width + placeGap
	}
}

func (s *sequence) participant(p part, height int) {
	x, box, text := s.center[p.Name], "part", "text"
	if p.Ours {
		box, text = "ours", "name"
	}
	width := measure(text, p.Name) + 24
	s.line("life", fmt.Sprintf("M%d %d V%d", x, partTop+partHeight, height-pageMargin-8), "", "")
	s.box(box, x-width/2, partTop, width, partHeight, 6)
	s.text(text, x, partTop+22, "middle", p.Name)
}

func (s *sequence) steps(steps []step) {
	for _, each := range steps {
		switch {
		case each.Block != nil:
			s.block(each.Block)
		case each.From == each.To:
			s.loop(each)
		default:
			s.message(each)
		}
	}
}

// message draws an arrow, with its text in the column next to the sender.
func (s *sequence) message(m step) {
	from, to := s.center[m.From], s.center[m.To]
	class, end := "way", "way-end"
	if m.Reply {
		class = "reply"
	}
	direction, anchor := 1, ""
	if to < from {
		direction, anchor = -1, "end"
	}
	lines := wrap("message", m.Text, min(s.column, max(to-from, from-to))-22)
	for _, text := range lines {
		s.y += lineHeight
		s.text("message", from+12*direction, s.y, anchor, text)
	}
	s.y += 8
	s.line(class, fmt.Sprintf("M%d %d H%d", from, s.y, to-direction), end, "")
	s.y += 10
}

// loop draws a step of one participant; the text is on the side where there is room.
func (s *sequence) loop(m step) {
	x, direction, anchor := s.center[m.From], 1, ""
	if x+s.column > pageWidth-pageMargin {
		direction, anchor = -1, "end"
	}
	s.y += 6
	top := s.y
	for _, text := range wrap("message", m.Text, s.column-loopWidth-24) {
		s.y += lineHeight
		s.text("message", x+(loopWidth+10)*direction, s.y, anchor, text)
	}
	s.y = max(s.y, top+lineHeight) + 4
	side := x + loopWidth*direction
	s.line("way", fmt.Sprintf("M%d %d H%d V%d H%d", x, top+4, side, s.y, x+direction), "way-end", "")
	s.y += 10
}

// block frames steps that repeat or that happen under a condition.
func (s *sequence) block(branches []branch) {
	left, width := pageMargin+8+6*s.indents, pageWidth-2*(pageMargin+8+6*s.indents)
	s.y += 8
	top, inside := s.y, s.inner(1)
	for i, b := range branches {
		if i > 0 {
			inside.y += 8
			inside.line("life", fmt.Sprintf("M%d %d H%d", left, inside.y, left+width), "", "")
		}
		inside.text("label", left+10, inside.y+18, "", b.Label)
		inside.y += 20
		inside.steps(b.Steps)
	}
	s.y = inside.y + 4
	s.add(`<rect class="block" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, left, top, width, s.y-top)
	s.elements.WriteString(inside.elements.String())
	s.y += 8
}
