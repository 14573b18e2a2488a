package graph

import (
	"cmp"
	"slices"
)

// exploreLimit limits the vertices that are visited to explain a refusal. Real paths have at most five edges, and a
// longer path does not help a reader.
const exploreLimit = 2000

// Explanation has the path from a vertex to a sink, or its paths to other sinks.
type Explanation struct {
	// Path from the start to the sink, both included; empty if there is none.
	Path []Vertex
	// Known is set if the graph has the start.
	Known bool
	// OtherPaths are paths to other sinks, the shortest first, at most five.
	OtherPaths [][]Vertex
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

// followed bounds the edges of one vertex over which a path is searched: each of them is known to lead to the sink.
const followed = 100

// pathLocked returns a short path, over vertices that are known to lead to the sink.
func (g *Graph) pathLocked(start, end id) []Vertex {
	came := map[id]id{start: start}
	queue := []id{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at == end {
			return g.wayLocked(came, end)
		}
		before := len(queue)
		for _, out := range g.edgesOf.out(at) {
			next := out.link.vertex()
			if _, seen := came[next]; seen || !out.link.transitive() && at != start || !g.reachesLocked(next, end) {
				continue
			}
			came[next] = at
			if queue = append(queue, next); len(queue)-before >= followed {
				break
			}
		}
	}
	return nil
}

// exploreLocked walks all paths from a vertex, and records where they lead.
func (g *Graph) exploreLocked(start id, e *Explanation) {
	const enough = 5
	came := map[id]id{start: start}
	queue := []id{start}
	for len(queue) > 0 && len(came) < exploreLimit {
		at := queue[0]
		queue = queue[1:]
		ends := true
		for _, out := range g.edgesOf.out(at) {
			next := out.link.vertex()
			if !out.link.transitive() && at != start {
				continue
			}
			ends = false
			if len(came) >= exploreLimit {
				break
			}
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
		switch {
		case g.vertices.at(at).kind == g.schema.Sink && len(e.OtherPaths) < enough:
			e.OtherPaths = append(e.OtherPaths, g.wayLocked(came, at))
		case ends && g.vertices.at(at).kind != g.schema.Sink && len(e.Ends) < enough:
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
	// Watched is set if the vertex's own object has a contribution, which may be empty.
	Watched bool
	In, Out []Neighbour
	// MoreIn and MoreOut are the numbers of edges that are not listed.
	MoreIn, MoreOut int
}

// Neighbour is a vertex at the other end of an edge.
type Neighbour struct {
	Vertex Vertex
	// Class of the edge; the strongest one where there are several.
	Class Class
}

// Bounds limit the collected vertices and edges; zero means no limit.
type Bounds struct {
	// Vertices is the number of vertices. Edges is the number of all their edges, of which each vertex gets a share.
	Vertices, Edges int
}

// atOnce is the number of vertices visited, or edges copied, while changes of the graph wait: less than a
// millisecond's work.
const atOnce = 1000

// Neighbourhoods returns the vertices that a filter selects, sorted by kind's name, namespace and name (DBG-4), and
// how many it selects. Checks do not wait for it, and changes of the graph wait only for a small part of it. So the
// result may mix several states of the graph.
func (g *Graph) Neighbourhoods(want func(Vertex) bool, bounds Bounds) (shown []Neighbourhood, found int) {
	wanted, found := g.wanted(want, bounds.Vertices)
	share := 0
	if bounds.Edges > 0 && len(wanted) > 0 {
		share = max(1, bounds.Edges/len(wanted)/2)
	}
	for len(wanted) > 0 {
		var part []Neighbourhood
		part, wanted = g.neighbourhoods(wanted, share)
		shown = append(shown, part...)
	}
	for i := range shown {
		shown[i].In, shown[i].Out = g.tidy(shown[i].In), g.tidy(shown[i].Out)
	}
	slices.SortFunc(shown, func(a, b Neighbourhood) int { return g.schema.Compare(a.Vertex, b.Vertex) })
	return shown, found
}

// numbered is a vertex with its number, which may be another vertex's once the vertex is removed.
type numbered struct {
	number id
	vertex Vertex
}

// wanted returns at most limit vertices that a filter selects, and the number of all that it selects.
func (g *Graph) wanted(want func(Vertex) bool, limit int) (wanted []numbered, found int) {
	for next := 1; next >= 0; {
		var part []numbered
		part, next = g.part(next)
		for _, n := range part {
			if !want(n.vertex) {
				continue
			}
			if found++; limit == 0 || len(wanted) < limit {
				wanted = append(wanted, n)
			}
		}
	}
	return wanted, found
}

// part returns the vertices with the next numbers, and the number at which to continue, which is negative at the end.
func (g *Graph) part(from int) (part []numbered, next int) {
	g.writing.Lock()
	defer g.writing.Unlock()
	end := g.vertices.len() + 1
	to := min(from+atOnce, end)
	for number := from; number < to; number++ {
		if g.vertices.at(id(number)).namespace != noNamespace {
			part = append(part, numbered{id(number), g.vertexLocked(id(number))})
		}
	}
	if to == end {
		return part, -1
	}
	return part, to
}

// neighbourhoods returns the neighbourhoods of the first vertices, and the remaining vertices.
func (g *Graph) neighbourhoods(of []numbered, share int) ([]Neighbourhood, []numbered) {
	g.writing.Lock()
	defer g.writing.Unlock()
	var result []Neighbourhood
	for edges := 0; edges < atOnce && len(result) < atOnce && len(of) > 0; of = of[1:] {
		v := g.vertices.at(of[0].number)
		if v.namespace == noNamespace || g.vertexLocked(of[0].number) != of[0].vertex {
			continue
		}
		n := Neighbourhood{Vertex: of[0].vertex, Watched: v.watched}
		origins, ends := g.edgesOf.in(of[0].number), g.edgesOf.out(of[0].number)
		in, out := len(origins), len(ends)
		if share > 0 {
			in, out = min(in, share), min(out, share)
		}
		n.MoreIn, n.MoreOut = len(origins)-in, len(ends)-out
		for _, origin := range origins[:in] {
			n.In = append(n.In, Neighbour{g.vertexLocked(origin.vertex()), origin.class()})
		}
		for _, to := range ends[:out] {
			n.Out = append(n.Out, Neighbour{g.vertexLocked(to.link.vertex()), to.link.class()})
		}
		edges += in + out
		result = append(result, n)
	}
	return result, of
}

// tidy sorts neighbours and merges parallel edges.
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
