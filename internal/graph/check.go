package graph

// Result is the result of a check.
type Result struct {
	// Known is set if the graph has the start, Watched if the start's own object contributes.
	Known, Watched bool
	// Reached is set if the start leads to the sink, and Managed if the first edge of a path is of class Manages.
	Reached, Managed bool
}

// Check reports whether a vertex leads to a sink. A vertex leads to itself (SA-13). It allocates nothing.
func (g *Graph) Check(from, sink Vertex) Result {
	g.mu.RLock()
	defer g.mu.RUnlock()
	start, known := g.names.find(g, from)
	if !known {
		return Result{}
	}
	v := g.vertices.at(start)
	result := Result{Known: true, Watched: v.watched}
	if v.sinks.more == 0 && v.direct == 0 { // Comparing its only sink is faster than finding the vertex of the sink.
		only := v.sinks.one[0].sink
		result.Reached = only != 0 && g.names.equals(g, only, sink) || from == sink
		return result
	}
	end, found := g.names.find(g, sink)
	if !found {
		return result
	}
	result.Reached = g.reachesLocked(start, end) || v.direct > 0 && g.reachesDirectlyLocked(start, end)
	return result
}

// CheckWith returns the result of Check and CheckManaged as if the start's own object contributed these edges instead
// of its present ones. Edges with another start add nothing: they lead to the start or to a sink, not from the start
// to anything.
func (g *Graph) CheckWith(from Vertex, edges []Edge, sink Vertex) Result {
	g.mu.RLock()
	defer g.mu.RUnlock()
	result := Result{Known: true, Watched: true, Reached: from == sink}
	end, found := g.names.find(g, sink)
	for _, e := range edges {
		if e.From != from || e.To == from {
			continue
		}
		to, known := g.names.find(g, e.To)
		if e.To == sink || known && found && g.reachesLocked(to, end) {
			result.Reached = true
			result.Managed = result.Managed || e.Class == Manages
		}
	}
	start, known := g.names.find(g, from)
	if !known || !found || g.vertices.at(start).watched {
		return result
	}
	for _, out := range g.edgesOf.out(start) { // Edges that other objects contribute count, too.
		if g.reachesLocked(out.link.vertex(), end) {
			result.Reached = true
			result.Managed = result.Managed || out.link.class() == Manages
		}
	}
	return result
}

// CheckManaged is Check, and also reports whether the vertex leads to the sink over an edge of class Manages. Its
// cost grows with the number of the vertex's edges.
func (g *Graph) CheckManaged(from, sink Vertex) Result {
	result := g.Check(from, sink)
	if !result.Reached {
		return result
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	start, known := g.names.find(g, from)
	end, found := g.names.find(g, sink)
	if !known || !found {
		return Result{}
	}
	for _, out := range g.edgesOf.out(start) {
		if out.link.class() == Manages && g.reachesLocked(out.link.vertex(), end) {
			result.Managed = true
			break
		}
	}
	return result
}

// reachesDirectlyLocked follows the edges that count only as the first edge of a path.
func (g *Graph) reachesDirectlyLocked(v, sink id) bool {
	for _, out := range g.edgesOf.out(v) {
		if !out.link.transitive() && g.reachesLocked(out.link.vertex(), sink) {
			return true
		}
	}
	return false
}

// Has reports whether the graph has a vertex (GR-2).
func (g *Graph) Has(v Vertex) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, found := g.names.find(g, v)
	return found
}
