package graph

import "slices"

// KindCount is the number of vertices of a kind.
type KindCount struct {
	Kind Kind
	// Vertices are all of them, Watched those whose own object contributes.
	Vertices, Watched int
}

// SinkCount counts the vertices with an edge to a sink.
type SinkCount struct {
	Sink Vertex
	// Watched is set if the sink's own object contributes.
	Watched bool
	// By is the number of vertices by their kind.
	By map[Kind]int
}

// Counts counts vertices by kind, and of at most so many sinks, the first by name, what leads to them. It returns how many sinks there are.
// Checks do not wait for it, and changes of the graph only for a small part of it.
func (g *Graph) Counts(most int) (kinds []KindCount, sinks []SinkCount, found int) {
	kinds = make([]KindCount, len(g.schema.Names))
	for kind := range kinds {
		kinds[kind].Kind = Kind(kind)
	}
	var all []numbered
	for next := 1; next >= 0; {
		var part []numbered
		part, next = g.part(next)
		for _, n := range part {
			kinds[n.vertex.Kind].Vertices++
			if n.watched {
				kinds[n.vertex.Kind].Watched++
			}
			if n.vertex.Kind == g.schema.Sink && n.leads {
				all = append(all, n)
			}
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return g.schema.Compare(a.vertex, b.vertex) })
	found = len(all)
	for _, n := range all[:min(most, found)] {
		if count, there := g.countAt(n); there {
			sinks = append(sinks, count)
		}
	}
	return kinds, sinks, found
}

// countAt counts what leads to a sink. One edge is a number, so that ten thousand of them are counted within a millisecond.
func (g *Graph) countAt(n numbered) (SinkCount, bool) {
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.vertices.at(n.number).namespace == noNamespace || g.vertexLocked(n.number) != n.vertex {
		return SinkCount{}, false
	}
	by := map[Kind]int{}
	before := id(0)
	for _, in := range g.edgesOf.in(n.number) {
		if origin := in.vertex(); origin != before { // Parallel edges stand side by side.
			by[g.vertices.at(origin).kind]++
			before = origin
		}
	}
	return SinkCount{Sink: n.vertex, Watched: n.watched, By: by}, true
}
