package pictures

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-project/espalier/internal/graph"
	"github.com/espalier-project/espalier/internal/seedauthorizer/relation"
)

// kindPictures are the pictures of both graphs.
func kindPictures() map[string]string {
	return map[string]string{
		"graph.svg": newKinds(relation.Watches).draw("The kinds of the garden and the edges between them",
			"An edge leads from what is needed to what needs it; all paths end at a Seed."),
		"graph-self-hosted.svg": newKinds(relation.SelfHosted).draw("The kinds of the graph for self-hosted shoots",
			"An edge leads from what is needed to what needs it; all paths end at a Shoot."),
	}
}

// arrow is all edges from one kind to another one.
type arrow struct {
	From, To string
	Rows     []string
	// Alone says that the edges are direct: they open their start only.
	Alone bool
}

func (a arrow) tip() string {
	return a.From + " → " + a.To + ": " + strings.Join(a.Rows, ", ")
}

// arrows joins the edges of a table, in its order.
func arrows(table relation.Table) []arrow {
	var all []arrow
	for _, w := range table {
		for _, r := range w.Rows {
			for _, from := range r.From {
				for _, to := range r.To {
					all = join(all, arrow{names[from], names[to], []string{r.ID}, r.Class == graph.Direct})
				}
			}
		}
	}
	return all
}

var names = relation.Schema.Names

func join(all []arrow, next arrow) []arrow {
	for i := range all {
		if all[i].From == next.From && all[i].To == next.To && all[i].Alone == next.Alone {
			if !slices.Contains(all[i].Rows, next.Rows[0]) {
				all[i].Rows = append(all[i].Rows, next.Rows...)
			}
			return all
		}
	}
	return append(all, next)
}

// busFrom is how many kinds must lead to a kind for it to be drawn at the right, at the end of a bus.
const busFrom = 7

// kinds is a picture with three columns: roots, which nothing leads to, at the left; then the kinds between; goals at the right.
type kinds struct {
	canvas
	arrows []arrow
	// roots need a lane to kinds of the middle column; goals have a bus.
	roots, middle, goals []string
	// y is the middle of a kind's box.
	y map[string]int
	// lanes are the columns of the vertical lines between roots and the middle.
	lanes []string
}

func newKinds(table relation.Table) *kinds {
	k := &kinds{arrows: arrows(table), y: map[string]int{}}
	var all []string
	in, inner := map[string]int{}, map[string]bool{}
	for _, a := range k.arrows {
		for _, kind := range []string{a.From, a.To} {
			if !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
		in[a.To]++
	}
	goal := func(kind string) bool { return in[kind] >= busFrom }
	for _, a := range k.arrows {
		inner[a.From] = inner[a.From] || !goal(a.To)
	}
	for _, kind := range all {
		switch {
		case goal(kind):
			k.goals = append(k.goals, kind)
		case in[kind] == 0 && inner[kind]:
			k.roots = append(k.roots, kind)
		default:
			k.middle = append(k.middle, kind)
		}
	}
	k.order()
	return k
}

// order puts each kind of the middle directly above the one it leads to, groups with the most arrows from roots first, and roots next to
// their targets.
func (k *kinds) order() {
	var groups [][]string
	for _, kind := range k.middle {
		if !slices.ContainsFunc(k.arrows, func(a arrow) bool { return a.From == kind && !a.Alone && slices.Contains(k.middle, a.To) }) {
			groups = append(groups, k.leadingTo(kind, nil))
		}
	}
	weight := func(group []string) (n int) {
		for _, kind := range group {
			n += len(k.into(kind, k.roots))
		}
		return n
	}
	slices.SortStableFunc(groups, func(a, b []string) int { return cmp.Compare(weight(b), weight(a)) })
	k.middle = slices.Compact(slices.Concat(groups...))
	k.place()
	for _, kind := range slices.Concat(k.roots, k.middle) {
		if k.needsLane(kind) {
			k.lanes = append(k.lanes, kind)
		}
	}
}

// leadingTo appends to placed the kinds of the middle that lead to a kind, and then the kind.
func (k *kinds) leadingTo(kind string, placed []string) []string {
	for _, a := range k.into(kind, k.middle) {
		if !a.Alone && !slices.Contains(placed, a.From) {
			placed = k.leadingTo(a.From, placed)
		}
	}
	return append(placed, kind)
}

// place gives the kinds of the left and of the middle their heights.
func (k *kinds) place() {
	for i, kind := range k.middle {
		k.y[kind] = kindTop + i*kindPitch
	}
	slices.Sort(k.goals)
	mean := func(kind string) int {
		sum, n := 0, 0
		for _, a := range k.arrows {
			if a.From == kind && slices.Contains(k.middle, a.To) {
				sum, n = sum+k.y[a.To], n+1
			}
		}
		return sum / n
	}
	slices.SortStableFunc(k.roots, func(a, b string) int { return cmp.Compare(mean(a), mean(b)) })
	next := kindTop
	for _, kind := range k.roots {
		k.y[kind] = max(next, mean(kind))
		next = k.y[kind] + kindPitch
	}
	for _, kind := range k.roots {
		k.y[kind] += kindPitch / 2 // between the rows of the middle, so that no line meets one of another root
	}
}

// into are the arrows to a kind from some others.
func (k *kinds) into(kind string, from []string) []arrow {
	var all []arrow
	for _, a := range k.arrows {
		if a.To == kind && slices.Contains(from, a.From) {
			all = append(all, a)
		}
	}
	return all
}

// below says whether an arrow leads to the next kind of the middle: it needs no lane.
func (k *kinds) below(a arrow) bool {
	i := slices.Index(k.middle, a.From)
	return !a.Alone && i >= 0 && i+1 < len(k.middle) && k.middle[i+1] == a.To
}

func (k *kinds) needsLane(kind string) bool {
	return slices.ContainsFunc(k.arrows, func(a arrow) bool {
		return a.From == kind && !k.below(a) && (slices.Contains(k.roots, kind) || slices.Contains(k.middle, a.To))
	})
}

// The measures of a picture of kinds, in pixels.
const (
	kindTop     = 60
	kindPitch   = 38
	passPitch   = 26
	lineOffset  = 4
	kindHeight  = 26
	rootLeft    = 30
	rootWidth   = 180
	lanePitch   = 14
	middleLeft  = 400
	middleWidth = 210
	busLeft     = 700
	busPitch    = 60
	goalLeft    = 900
	goalWidth   = 110
	goalHeight  = 60
)

func (k *kinds) draw(title, description string) string {
	passes := k.passes()
	bottom := kindTop + len(k.middle)*kindPitch
	for i, kind := range passes {
		k.y["pass "+kind] = bottom + i*passPitch
	}
	bottom += len(passes)*passPitch + 6
	height := bottom + 40
	k.box("cluster", pageMargin, pageMargin, pageWidth-2*pageMargin, height-2*pageMargin, 10)
	for i, goal := range k.goals {
		k.y[goal] = kindTop + (i+1)*(bottom-kindTop)/(len(k.goals)+1)
	}
	for i, kind := range k.lanes {
		k.lane(kind, middleLeft-24-(len(k.lanes)-1-i)*lanePitch)
	}
	for i, goal := range k.goals {
		k.bus(goal, busLeft+i*busPitch)
	}
	k.short()
	k.boxes()
	k.legend(height - 28)
	return k.picture(pageWidth, height, title, description)
}

// passes are the roots that also lead to goals: their lanes pass below the middle.
func (k *kinds) passes() []string {
	var all []string
	for _, kind := range k.roots {
		if slices.ContainsFunc(k.arrows, func(a arrow) bool { return a.From == kind && slices.Contains(k.goals, a.To) }) {
			all = append(all, kind)
		}
	}
	return all
}

// lane draws the vertical line of a kind, and from there an arrow to each kind of the middle.
func (k *kinds) lane(kind string, x int) {
	taps := slices.DeleteFunc(slices.Clone(k.arrows), func(a arrow) bool {
		return a.From != kind || !slices.Contains(k.middle, a.To) || k.below(a)
	})
	pass, passes := k.y["pass "+kind]
	start, first, last, trunk := rootLeft+rootWidth, k.y[kind], k.y[kind], "alone"
	if slices.Contains(k.middle, kind) {
		start = middleLeft
	}
	for _, a := range taps {
		y, class, end := k.y[a.To]+k.offset(a), "way", "way-end"
		if a.Alone {
			class, end = "alone", "asks-end"
		} else {
			trunk = "way"
		}
		first, last = min(first, y), max(last, y)
		k.line(class, fmt.Sprintf("M%d %d H%d", x, y, middleLeft-1), end, a.tip())
		if passes || len(taps) > 1 {
			k.dot("way-end", x, y)
		}
	}
	if passes {
		last = pass + (len(k.goals)-1)*lineOffset
		k.text("small", middleLeft, pass-lineOffset*len(k.goals)-2, "", kind)
	}
	k.line(trunk, fmt.Sprintf("M%d %d H%d M%d %d V%d", start, k.y[kind], x, x, first, last), "", "")
}

// offset spreads the arrows that reach a kind over the side of its box.
func (k *kinds) offset(a arrow) int {
	var from []string
	for _, lane := range k.lanes {
		if slices.ContainsFunc(k.arrows, func(b arrow) bool { return b.From == lane && b.To == a.To && !k.below(b) }) {
			from = append(from, lane)
		}
	}
	return (2*slices.Index(from, a.From) - len(from) + 1) * 7 / 2
}

// bus draws the vertical line to a goal, and the lines of all kinds that lead to it.
func (k *kinds) bus(goal string, x int) {
	class := k.class(goal)
	first, last := k.y[goal], k.y[goal]
	for _, a := range k.arrows {
		if a.To != goal || slices.Contains(k.goals, a.From) {
			continue
		}
		start, y := middleLeft+middleWidth, k.y[a.From]
		if slices.Contains(k.roots, a.From) {
			start, y = k.laneOf(a.From), k.y["pass "+a.From]
		}
		y += (2*slices.Index(k.goals, goal) - len(k.goals) + 1) * lineOffset
		first, last = min(first, y), max(last, y)
		k.line(class, fmt.Sprintf("M%d %d H%d", start, y, x), "", a.tip())
		k.dot(class+"-end", x, y)
	}
	k.line(class, fmt.Sprintf("M%d %d V%d M%d %d H%d", x, first, last, x, k.y[goal], goalLeft-1), class+"-end", "")
}

// class is the color of what leads to a goal: green leads to the first one.
func (k *kinds) class(goal string) string {
	if goal == k.goals[0] {
		return "asks"
	}
	return "way"
}

func (k *kinds) laneOf(kind string) int {
	return middleLeft - 24 - (len(k.lanes)-1-slices.Index(k.lanes, kind))*lanePitch
}

// short draws the arrows that need no lane: down to the next kind, between goals, and back from a goal.
func (k *kinds) short() {
	for _, a := range k.arrows {
		fromGoal := slices.Contains(k.goals, a.From)
		switch {
		case k.below(a):
			x := middleLeft + middleWidth/2
			k.line("way", fmt.Sprintf("M%d %d V%d", x, k.y[a.From]+kindHeight/2, k.y[a.To]-kindHeight/2-1), "way-end", a.tip())
		case fromGoal && slices.Contains(k.goals, a.To):
			up := -1
			if k.y[a.To] > k.y[a.From] {
				up = 1
			}
			x := goalLeft + goalWidth/2
			k.line(k.class(a.To), fmt.Sprintf("M%d %d V%d", x, k.y[a.From]+up*goalHeight/2, k.y[a.To]-up*(goalHeight/2+1)), k.class(a.To)+"-end", a.tip())
		case fromGoal:
			x, y := (middleLeft+middleWidth+busLeft)/2, k.y[a.From]+goalHeight/3
			k.line("alone", fmt.Sprintf("M%d %d H%d V%d H%d", goalLeft, y, x, k.y[a.To]+9, middleLeft+middleWidth+1), "asks-end", a.tip())
		}
	}
}

func (k *kinds) boxes() {
	for _, kind := range k.roots {
		k.box("part", rootLeft, k.y[kind]-kindHeight/2, rootWidth, kindHeight, 6)
		k.text("text", rootLeft+10, k.y[kind]+5, "", kind)
	}
	for _, kind := range k.middle {
		k.box("part", middleLeft, k.y[kind]-kindHeight/2, middleWidth, kindHeight, 6)
		k.text("text", middleLeft+10, k.y[kind]+5, "", kind)
	}
	for _, kind := range k.goals {
		k.box("ours", goalLeft, k.y[kind]-goalHeight/2, goalWidth, goalHeight, 6)
		k.text("name", goalLeft+goalWidth/2, k.y[kind]+5, "middle", kind)
	}
}

func (k *kinds) legend(y int) {
	x := rootLeft
	entry := func(class, end, text string) {
		k.line(class, fmt.Sprintf("M%d %d H%d", x, y-4, x+38), end, "")
		k.text("small", x+48, y, "", text)
		x += 48 + measure("small", text) + 30
	}
	for _, goal := range k.goals {
		entry(k.class(goal), k.class(goal)+"-end", "leads to a "+goal)
	}
	if len(k.goals) == 1 {
		entry("way", "way-end", "leads to another kind")
	}
	if slices.ContainsFunc(k.arrows, func(a arrow) bool { return a.Alone }) {
		entry("alone", "asks-end", "opens its start only")
	}
}
