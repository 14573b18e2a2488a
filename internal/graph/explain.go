package graph

import (
	"cmp"
	"slices"
)

// exploreLimit bounds what is walked to explain a refusal: real paths have at most five edges, and what is farther away than
// this many vertices helps nobody who reads it.
const exploreLimit = 2000

// Explanation says why a vertex leads to a sink, or where its paths lead instead.
type Explanation struct {
	// Path from the start to the sink, both included; empty if there is none.
	Path []Vertex
	// Known says that the graph has the start.
	Known bool
	// Elsewhere are paths to other sinks, the shortest first, at most five.
	Elsewhere [][]Vertex
	// Ends are vertices at which paths end without a sink, the nearest first, at most five.
	Ends [][]Vertex
}

// Explain searches for a path. Checks do not wait for it.
func (g *Graph) Explain(from, sink Vertex) Explanation {
	g.writing.Lock()
	defer g.writing.Unlock()
	start, known := g.names.find(g, from)
	if !known {
		return Explanation{}
	}
	end, exists := g.names.find(g, sink)
	e := Explanation{Known: true}
	if exists {
		if path := g.pathLocked(start, end); path != nil {
			e.Path = path
			return e
		}
	}
	g.exploreLocked(start, &e)
	return e
}

// pathLocked is the shortest path, found over the vertices that are known to lead to the sink.
func (g *Graph) pathLocked(start, end id) []Vertex {
	came := map[id]id{start: start}
	queue := []id{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at == end {
			return g.wayLocked(came, end)
		}
		for _, out := range g.vertices[at].out {
			next := out.link.vertex()
			if _, seen := came[next]; seen || !out.link.transitive() && at != start || !g.reachesLocked(next, end) {
				continue
			}
			came[next] = at
			queue = append(queue, next)
		}
	}
	return nil
}

// exploreLocked walks all paths from a vertex and notes where they lead.
func (g *Graph) exploreLocked(start id, e *Explanation) {
	const enough = 5
	came := map[id]id{start: start}
	queue := []id{start}
	for len(queue) > 0 && len(came) < exploreLimit {
		at := queue[0]
		queue = queue[1:]
		ends := true
		for _, out := range g.vertices[at].out {
			next := out.link.vertex()
			if !out.link.transitive() && at != start {
				continue
			}
			ends = false
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
		switch {
		case g.vertices[at].kind == g.schema.Sink && len(e.Elsewhere) < enough:
			e.Elsewhere = append(e.Elsewhere, g.wayLocked(came, at))
		case ends && g.vertices[at].kind != g.schema.Sink && len(e.Ends) < enough:
			e.Ends = append(e.Ends, g.wayLocked(came, at))
		}
	}
}

func (g *Graph) wayLocked(came map[id]id, end id) []Vertex {
	way := []Vertex{g.vertexLocked(end)}
	for came[end] != end {
		end = came[end]
		way = append(way, g.vertexLocked(end))
	}
	slices.Reverse(way)
	return way
}

// Neighbourhood is a vertex with its neighbours.
type Neighbourhood struct {
	Vertex Vertex
	// Watched says that the vertex's own object contributes.
	Watched bool
	In, Out []Neighbour
}

// Neighbour is a vertex at the other end of an edge.
type Neighbour struct {
	Vertex Vertex
	// Class of the edge; the strongest one where there are several.
	Class Class
}

// Neighbourhoods returns the vertices that a filter wants, sorted by kind's name, namespace and name (DBG-4), from one consistent
// view. Checks do not wait for it.
func (g *Graph) Neighbourhoods(want func(Vertex) bool) []Neighbourhood {
	g.writing.Lock()
	defer g.writing.Unlock()
	var result []Neighbourhood
	for number := range g.vertices {
		v := &g.vertices[number]
		if v.namespace == noNamespace {
			continue
		}
		identity := g.vertexLocked(id(number))
		if !want(identity) {
			continue
		}
		n := Neighbourhood{Vertex: identity, Watched: v.watched}
		for _, origin := range v.in {
			n.In = append(n.In, Neighbour{g.vertexLocked(origin.vertex()), origin.class()})
		}
		for _, out := range v.out {
			n.Out = append(n.Out, Neighbour{g.vertexLocked(out.link.vertex()), out.link.class()})
		}
		n.In, n.Out = g.tidy(n.In), g.tidy(n.Out)
		result = append(result, n)
	}
	slices.SortFunc(result, func(a, b Neighbourhood) int { return g.schema.Compare(a.Vertex, b.Vertex) })
	return result
}

// tidy sorts neighbours and makes one of parallel edges.
func (g *Graph) tidy(neighbours []Neighbour) []Neighbour {
	slices.SortFunc(neighbours, func(a, b Neighbour) int {
		return cmp.Or(g.schema.Compare(a.Vertex, b.Vertex), cmp.Compare(b.Class%Direct, a.Class%Direct))
	})
	return slices.CompactFunc(neighbours, func(a, b Neighbour) bool { return a.Vertex == b.Vertex })
}

// Compare orders vertices by the name of the kind, namespace and name.
func (s Schema) Compare(a, b Vertex) int {
	return cmp.Or(cmp.Compare(s.Names[a.Kind], s.Names[b.Kind]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
