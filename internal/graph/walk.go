package graph

// Step is a vertex that a walk visits.
type Step struct {
	Vertex Vertex
	// Watched is set if the vertex's own object has a contribution, which may be empty.
	Watched bool
	// From is the index of the step before, -1 for the start.
	From int
}

// Onward walks the edges from some vertices, the nearest first, and visits at most the given number of vertices. A
// start that the graph does not have is a step, too. The first edge of a path may be of class Direct, as in a check,
// if direct is set; if managed is set, it must be of class Manages. Checks do not wait for it.
func (g *Graph) Onward(starts []Vertex, direct, managed bool, most int) []Step {
	g.writing.Lock()
	defer g.writing.Unlock()
	steps := make([]Step, 0, len(starts))
	numbers := make([]id, 0, len(starts)) // Vertices of the steps; 0 is none.
	seen := map[id]bool{}
	for _, start := range starts {
		number, found := g.names.find(g, start)
		if found && seen[number] {
			continue
		}
		seen[number] = found
		steps = append(steps, Step{Vertex: start, Watched: found && g.vertices.at(number).watched, From: -1})
		numbers = append(numbers, number)
	}
	for at := 0; at < len(steps) && len(steps) < most; at++ {
		if numbers[at] == 0 {
			continue
		}
		first := steps[at].From < 0
		for _, out := range g.edgesOf.out(numbers[at]) {
			next := out.link.vertex()
			if seen[next] || first && managed && out.link.class() != Manages || !out.link.transitive() && (!first || !direct) {
				continue
			}
			if len(steps) >= most {
				break
			}
			seen[next] = true
			steps = append(steps, Step{Vertex: g.vertexLocked(next), Watched: g.vertices.at(next).watched, From: at})
			numbers = append(numbers, next)
		}
	}
	return steps
}

// Leading returns vertices from which transitive edges lead to a sink: the sink first, then the nearest, at most the
// given number.
func (g *Graph) Leading(sink Vertex, most int) []Vertex {
	g.writing.Lock()
	defer g.writing.Unlock()
	result := []Vertex{sink}
	end, found := g.names.find(g, sink)
	if !found {
		return result
	}
	queue, seen := []id{end}, map[id]bool{end: true}
	for len(queue) > 0 && len(result) < most {
		at := queue[0]
		queue = queue[1:]
		for _, in := range g.edgesOf.in(at) {
			if next := in.vertex(); in.transitive() && !seen[next] && len(result) < most {
				seen[next] = true
				queue = append(queue, next)
				result = append(result, g.vertexLocked(next))
			}
		}
	}
	return result
}

// Find returns at most the given number of vertices that a filter selects, in no order. Changes of the graph wait
// only for a small part of it.
func (g *Graph) Find(want func(Vertex) bool, most int) []Vertex {
	wanted, _ := g.wanted(want, most)
	found := make([]Vertex, len(wanted))
	for i, n := range wanted {
		found[i] = n.vertex
	}
	return found
}
